//! Where a run stands, in one row of its terminal.

use super::columns;
use crate::host::{AgentLine, Block, OwnLine, RunLine, RunState};
use crate::protocol::Shown;

/// What the row tells.
#[derive(Debug, Default)]
pub(super) struct Status {
    doing: Doing,
    /// Tools that run, by their calls.
    tools: Vec<(String, String)>,
    model: Option<String>,
    turn: u64,
    cost: Option<f64>,
}

/// What the agent does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Doing {
    #[default]
    Starting,
    Working,
    Idle,
    Gone,
}

impl Status {
    /// Takes note of what happens in the run.
    pub(super) fn hear(&mut self, line: &RunLine) {
        match line {
            RunLine::Own(OwnLine::State { state }) => {
                self.doing = match state {
                    RunState::Starting => Doing::Starting,
                    RunState::Running | RunState::Asking => Doing::Working,
                    RunState::Idle => Doing::Idle,
                    RunState::Parked { .. } | RunState::Lost | RunState::Ended { .. } => Doing::Gone,
                };
                if self.doing != Doing::Working {
                    self.tools.clear();
                }
            }
            RunLine::Agent { meaning, .. } => self.hear_agent(meaning),
            RunLine::Own(_) => {}
        }
    }

    fn hear_agent(&mut self, line: &AgentLine) {
        match line {
            AgentLine::Init { model } => {
                self.turn += 1;
                self.model = model.as_ref().map(|model| Shown::line(model).to_string());
            }
            AgentLine::Assistant { blocks, .. } => {
                for block in blocks {
                    if let Block::ToolUse { id, name, .. } = block {
                        self.tools.push((id.clone(), Shown::line(name).to_string()));
                    }
                }
            }
            AgentLine::ToolResults(results) => {
                self.tools
                    .retain(|(call, _)| results.iter().all(|result| result.tool_use != *call));
            }
            AgentLine::Result(result) => {
                self.cost = result.cost.or(self.cost);
                self.tools.clear();
            }
            _ => {}
        }
    }

    /// Draws the row: what is wanted of the person first, and the rest as far as there is room.
    pub(super) fn row(&self, asked: Option<&str>, more: usize, columns: usize) -> String {
        let doing = match (asked, self.doing) {
            (Some(code), _) if more > 0 => format!("waiting for you: {code} and {more} more"),
            (Some(code), _) => format!("waiting for you: {code}"),
            (None, Doing::Starting) => "starting".to_owned(),
            (None, Doing::Working) => match self.tools.last() {
                Some((_, tool)) => format!("running {tool}"),
                None => "working".to_owned(),
            },
            (None, Doing::Idle) => "your turn; Ctrl-D ends the run".to_owned(),
            (None, Doing::Gone) => "the agent is put aside".to_owned(),
        };
        let turn = (self.turn > 0).then(|| format!("turn {}", self.turn));
        let cost = self.cost.map(|cost| format!("${cost:.4}"));
        let mut row = columns::head(&doing, columns);
        for part in [turn, cost, self.model.clone()].into_iter().flatten() {
            let longer = format!("{row} · {part}");
            if columns::width(&longer) <= columns {
                row = longer;
            }
        }
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn hear(status: &mut Status, line: &Value) {
        status.hear(&RunLine::read(line.to_string()).unwrap());
    }

    #[test]
    fn the_row_tells_what_is_waited_for_and_drops_what_has_no_room() {
        let mut status = Status::default();
        assert_eq!(status.row(None, 0, 79), "starting");
        hear(
            &mut status,
            &json!({ "type": "pml", "event": "state", "state": { "name": "running" } }),
        );
        hear(
            &mut status,
            &json!({ "type": "system", "subtype": "init", "model": "claude-opus-5" }),
        );
        hear(
            &mut status,
            &json!({ "type": "result", "subtype": "success", "total_cost_usd": 0.0421 }),
        );
        assert_eq!(
            status.row(None, 0, 79),
            "working · turn 1 · $0.0421 · claude-opus-5"
        );
        assert_eq!(
            status.row(Some("bfukm"), 1, 39),
            "waiting for you: bfukm and 1 more"
        );
        assert_eq!(
            status.row(Some("bfukm"), 0, 39),
            "waiting for you: bfukm · turn 1"
        );
        assert_eq!(status.row(Some("bfukm"), 0, 10), "waiting f…");
        let call = json!({ "type": "tool_use", "id": "t1", "name": "Bash", "input": {} });
        hear(
            &mut status,
            &json!({ "type": "assistant", "message": { "content": [call] } }),
        );
        assert_eq!(status.row(None, 0, 12), "running Bash");
    }
}
