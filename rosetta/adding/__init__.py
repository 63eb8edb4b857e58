"""Adding a framework: scaffold writes its files (``new``), locking makes its environment (``env``), check finds its mistakes."""
