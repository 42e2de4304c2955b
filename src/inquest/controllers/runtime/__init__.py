"""What every controller runs on: the queue and its workers. Knows no rule of a case."""
