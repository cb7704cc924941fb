//! The tools and prompts of pml itself.

mod ask_user;
mod definitions;
mod permission_prompt;
pub(crate) mod prompts;
mod question_text;
mod question_tool;
mod relayed_question;
mod status;

use ask_user::AskUser;
use permission_prompt::PermissionPrompt;
use question_tool::QuestionTool;

use crate::config::AskUserTools;
use crate::protocol::{Json, own_tool};
use crate::proxy::Proxy;
use crate::stdio::ask::ladder::{Ladder, Requester, Resolution};
use crate::stdio::client::answer::error_result;

pub(crate) use definitions::definitions;

/// Runs a call to one of pml's own tools; `None` if it is not one.
pub(crate) async fn run(
    name: &str,
    arguments: Option<Json<'_>>,
    requester: &Requester,
    proxy: &Proxy,
    ladder: &Ladder,
) -> Option<Resolution> {
    let tool = match name {
        own_tool::STATUS => return Some(Resolution::OwnResult(status::status(proxy).await)),
        own_tool::APPROVAL_PROMPT => None,
        name => Some(QuestionTool::of(name)?),
    };
    if proxy.ask_user().tools == AskUserTools::Off {
        let what = format!("`{name}` is switched off by \"askUser\": {{\"enabled\": false}}");
        return Some(Resolution::OwnResult(error_result(&what, None)));
    }
    Some(match tool {
        None => {
            let prompt = PermissionPrompt {
                proxy,
                ladder,
                requester,
            };
            prompt.run(arguments).await
        }
        Some(tool) => {
            let ask = AskUser {
                proxy,
                ladder,
                tool,
                requester,
            };
            ask.run(arguments).await
        }
    })
}
