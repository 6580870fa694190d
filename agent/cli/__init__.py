"""Arguments, printing and exit codes; nothing else prints."""
