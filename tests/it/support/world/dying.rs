//! A client whose pml may die at any moment.

use std::io::Write as _;

use serde_json::{Value, json};

use super::{Client, PATIENCE};

impl Client {
    /// Sends a request and returns its answer; `None` if pml is gone.
    pub(crate) fn request_if_alive(&mut self, method: &str, params: &Value) -> Option<Value> {
        let id = self.next_id;
        self.next_id += 1;
        let line = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string();
        writeln!(self.stdin.as_mut().unwrap(), "{line}").ok()?;
        loop {
            let line = self.lines.recv_timeout(PATIENCE).ok()?;
            let message: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON: {line}"));
            if message["id"] == id {
                return Some(message);
            }
            self.aside.push(message);
        }
    }
}
