// Before anything is drawn: the reader's theme and size of type, so that the page does not flash.
try {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = localStorage.getItem("rosetta.theme") || (dark ? "dark" : "light");
  root.style.setProperty("--scale", localStorage.getItem("rosetta.scale") || "1");
} catch { /* some hosts forbid storage: the light theme, the usual size */ }
