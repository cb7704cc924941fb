//! Words of Slack: those for its errors, with what to do about each, and those that people typed.

use std::fmt::Write as _;

use super::TITLE;
use super::token::Token;
use crate::channels::channel::{ChannelError, ReplyTo};

/// The longest word that Slack has for an error.
const WORD: usize = 64;

/// Tells what an error of the Web API means.
pub(super) fn refusal(word: &str, needed: Option<&str>, token: Token) -> ChannelError {
    let word = sanitized(word);
    if matches!(
        word.as_str(),
        "internal_error"
            | "fatal_error"
            | "service_unavailable"
            | "request_timeout"
            | "team_added_to_org"
            | "update_failed"
    ) {
        return ChannelError::Unreachable {
            channel: TITLE,
            reason: format!("it has trouble of its own, `{word}`"),
        };
    }
    let mut reason = format!("`{word}`");
    if let (Some(needed), "missing_scope") = (needed, word.as_str()) {
        let _ = write!(reason, " ({})", sanitized(needed));
    }
    if let Some(advice) = advice_on_token(&word, token).or_else(|| advice(&word)) {
        let _ = write!(reason, ": {advice}");
    }
    ChannelError::Refused {
        channel: TITLE,
        reason,
    }
}

/// Says what to do about an error of the token itself: which one it is, where it is made, and how it is tried.
fn advice_on_token(word: &str, token: Token) -> Option<&'static str> {
    Some(match (word, token) {
        ("invalid_auth" | "not_authed" | "token_revoked" | "token_expired", Token::App) => {
            "`appToken` is wrong or was revoked: make one by `Basic Information`, `App-Level Tokens`, with the scope \
             `connections:write`, start `pml serve` again, and try it: pml channels test slack"
        }
        ("invalid_auth" | "not_authed" | "token_revoked" | "token_expired", Token::Bot) => {
            "`botToken` is wrong or was revoked: copy it from `OAuth & Permissions` of the app, start `pml serve` again, \
             and try it: pml channels test slack"
        }
        ("not_allowed_token_type", Token::App) => {
            "`appToken` must be the one that begins with xapp-, of `Basic Information`, `App-Level Tokens`; is that of \
             the bot in its place?"
        }
        ("not_allowed_token_type", Token::Bot) => {
            "`botToken` must be the one that begins with xoxb-, of `OAuth & Permissions`; is that of the app in its place?"
        }
        ("missing_scope" | "no_permission" | "accesslimited", Token::App) => {
            "`appToken` lacks the scope `connections:write`: make another by `Basic Information`, `App-Level Tokens`, and \
             start `pml serve` again"
        }
        ("missing_scope" | "no_permission" | "accesslimited", Token::Bot) => {
            "the app lacks a permission: compare it with what `pml channels slack manifest` prints, install it again, and \
             start `pml serve` again"
        }
        ("account_inactive" | "team_access_not_granted" | "org_login_required", _) => {
            "the app was removed from the workspace: install it again, copy its `botToken`, and start `pml serve` again"
        }
        _ => return None,
    })
}

/// Says what to do about any other error.
fn advice(word: &str) -> Option<&'static str> {
    Some(match word {
        "not_in_channel" | "channel_not_found" | "is_archived" => {
            "the conversation with the person is gone; let them write to the app once"
        }
        "user_not_found" | "users_not_found" | "user_not_visible" | "invalid_users" => {
            "`people` names member ids of this workspace, such as U0123; copy it from the person's profile"
        }
        "user_disabled" | "cannot_dm_bot" => "only people with an account in this workspace can be asked",
        "messages_tab_disabled" => "switch on the messages tab in `App Home` of the app",
        "message_not_found" | "cant_update_message" | "edit_window_closed" => {
            "the message is gone or may not be edited any more"
        }
        "msg_too_long" | "msg_blocks_too_long" => "answer it in the inbox: `pml inbox`",
        "expired_trigger_id"
        | "trigger_expired"
        | "trigger_exchanged"
        | "exchanged_trigger_id"
        | "invalid_trigger_id" => "press the button again",
        "forbidden_team" | "access_denied" | "restricted_action" | "ekm_access_denied" | "team_not_found" => {
            "an administrator of the workspace forbids it"
        }
        _ => return None,
    })
}

/// Reads where a reply goes: the conversation and the person.
pub(super) fn place(reply_to: &ReplyTo) -> Option<(&str, &str)> {
    Some((reply_to.0["channel"].as_str()?, reply_to.0["user"].as_str()?))
}

/// Returns a word that Slack sent if it is one: small letters, digits and what joins them.
pub(super) fn sanitized(word: &str) -> String {
    let is_word = (1..=WORD).contains(&word.len())
        && word.bytes().all(|letter| {
            letter.is_ascii_lowercase() || letter.is_ascii_digit() || b"_:.,-".contains(&letter)
        });
    if is_word {
        word.to_owned()
    } else {
        "no word of Slack".to_owned()
    }
}

/// Returns what a person typed: Slack writes links and names in markup, and three characters as others.
pub(super) fn typed(text: &str) -> String {
    let mut typed = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find('<') {
        unescape(&rest[..open], &mut typed);
        let inside = &rest[open + 1..];
        // A bracket that a person typed is escaped, so this one is Slack's.
        let Some(close) = inside.find('>') else {
            rest = &rest[open..];
            break;
        };
        let link = &inside[..close];
        if link.starts_with(['@', '#', '!']) {
            typed.push('<');
            unescape(link, &mut typed);
            typed.push('>');
        } else {
            unescape(link.split_once('|').map_or(link, |(_, label)| label), &mut typed);
        }
        rest = &inside[close + 1..];
    }
    unescape(rest, &mut typed);
    typed
}

fn unescape(text: &str, into: &mut String) {
    let mut rest = text;
    while let Some(place) = rest.find('&') {
        into.push_str(&rest[..place]);
        rest = &rest[place..];
        let (letter, length) = match rest {
            _ if rest.starts_with("&amp;") => ('&', 5),
            _ if rest.starts_with("&lt;") => ('<', 4),
            _ if rest.starts_with("&gt;") => ('>', 4),
            _ => ('&', 1),
        };
        into.push(letter);
        rest = &rest[length..];
    }
    into.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_typed_is_read_without_the_markup_of_slack() {
        for (sent, typed_by_the_person) in [
            ("a &lt;b&gt; &amp;amp; c & d", "a <b> &amp; c & d"),
            ("see <http://x.example/?a=1&amp;b|x.example>", "see x.example"),
            ("<https://x.example/?a=1&amp;b>", "https://x.example/?a=1&b"),
            ("ask <@U1> and <!here>", "ask <@U1> and <!here>"),
            ("<", "<"),
            ("a<b", "a<b"),
            ("", ""),
        ] {
            assert_eq!(typed(sent), typed_by_the_person, "{sent}");
        }
    }

    #[test]
    fn an_error_says_what_to_do_and_repeats_no_text_of_the_service() {
        for (word, told) in [
            (
                "invalid_auth",
                "Slack refuses: `invalid_auth`: `botToken` is wrong or was revoked: copy it from",
            ),
            ("not_in_channel", "let them write to the app once"),
            ("account_inactive", "install it again"),
            ("a_new_word", "Slack refuses: `a_new_word`"),
            ("<!channel> xoxb-1", "Slack refuses: `no word of Slack`"),
            ("", "`no word of Slack`"),
            (
                "internal_error",
                "Slack cannot be reached: it has trouble of its own",
            ),
        ] {
            let error = refusal(word, None, Token::Bot).to_string();
            assert!(error.contains(told), "{error}");
        }
        let scope = refusal("missing_scope", Some("im:write"), Token::Bot).to_string();
        assert!(
            scope.starts_with("Slack refuses: `missing_scope` (im:write): the app lacks a permission"),
            "{scope}"
        );
    }

    #[test]
    fn an_error_of_a_token_names_the_token_its_place_and_what_to_run() {
        for word in ["invalid_auth", "not_allowed_token_type", "missing_scope"] {
            for (token, own, other) in [
                (Token::App, "App-Level Tokens", "OAuth"),
                (Token::Bot, "bot", "App-Level"),
            ] {
                let told = refusal(word, None, token).to_string();
                let is_of_app = word == "missing_scope" && token == Token::Bot;
                assert!(told.contains(own) || is_of_app, "{told}");
                assert!(!told.contains(other), "{told}");
                // It stands in a line that is kept.
                assert_eq!(crate::workflow::kept_error(&told), told);
            }
        }
        let app = refusal("missing_scope", Some("connections:write"), Token::App).to_string();
        assert!(
            app.contains("`appToken` lacks the scope `connections:write`"),
            "{app}"
        );
    }
}
