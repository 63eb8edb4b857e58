"""How a row is called, wherever it stands: in the catalog, in a record, on the command line, as a file."""


class Named:
    """For classes with the fields ``task``, ``framework`` and ``variant`` (None: the notebook with its own defaults)."""

    @property
    def name(self) -> str:
        """``framework`` or ``framework[variant]``, as the command line takes it within a task."""
        return self.framework if self.variant is None else f"{self.framework}[{self.variant}]"

    @property
    def full_name(self) -> str:
        """``task/framework[variant]``."""
        return f"{self.task}/{self.name}"

    @property
    def stem(self) -> str:
        """``framework`` or ``framework-variant``, as files are named."""
        return self.framework if self.variant is None else f"{self.framework}-{self.variant}"
