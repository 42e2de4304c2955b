"""Serves evidence and records of cases by an aggregated API, with the rights of whoever asks. Changes nothing."""
