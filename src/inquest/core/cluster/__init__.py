"""The one reading of Kubernetes objects: owners, labels, relations, hashes.

Says what stands there, never what is wrong.
"""
