"""What ``run_all.py doctor`` does: tells what this machine has, and lets every environment that fits compute something."""
