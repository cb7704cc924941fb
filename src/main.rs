//! Parses, runs, turns the outcome into an exit code; nothing else.

fn main() {}
