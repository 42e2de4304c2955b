"""Playbook files, ours and those of a folder. What cannot be read is refused with its line."""
