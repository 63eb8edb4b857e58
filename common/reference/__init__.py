"""One module for each task: its network in plain NumPy, the definition that every notebook is held against."""
