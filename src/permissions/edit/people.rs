//! Lets people in to a channel, and takes them out: the list `people` of one entry of `channels`.

use jsonc_parser::cst::{CstInputValue, CstNode, CstObject};
use serde_json::{Map, Value};

use super::EditError;
use crate::config::ChannelName;

/// What is done to the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Membership {
    /// The id is put into it.
    In,
    /// The id is taken out of it.
    Out,
}

const NOT_CONFIGURED: EditError = EditError::Shape {
    place: "the entry of the channel",
    expected: "there",
};

const NO_LIST: EditError = EditError::Shape {
    place: "people",
    expected: "a list",
};

/// Tells whether an entry of the list is an id; numbers are ids as well.
fn is(entry: &Value, id: &str) -> bool {
    match entry {
        Value::String(text) => text == id,
        Value::Number(number) => number.to_string() == id,
        _ => false,
    }
}

/// Makes the change on bare values.
pub(super) fn change_values(
    root: &mut Map<String, Value>,
    channel: ChannelName,
    id: &str,
    membership: Membership,
) -> Result<(), EditError> {
    let channels = root.get_mut("channels").and_then(Value::as_object_mut);
    let entry = channels.and_then(|channels| channels.get_mut(channel.key())?.as_object_mut());
    let entry = entry.ok_or(NOT_CONFIGURED)?;
    if membership == Membership::Out && !entry.contains_key("people") {
        return Ok(());
    }
    let people = entry.entry("people").or_insert_with(|| Value::Array(Vec::new()));
    let people = people.as_array_mut().ok_or(NO_LIST)?;
    match membership {
        Membership::In if people.iter().any(|entry| is(entry, id)) => {}
        Membership::In => people.push(Value::from(id)),
        Membership::Out => people.retain(|entry| !is(entry, id)),
    }
    Ok(())
}

/// Makes the change on the syntax tree.
pub(super) fn change_tree(
    root: &CstObject,
    channel: ChannelName,
    id: &str,
    membership: Membership,
) -> Result<(), EditError> {
    let channels = root.object_value("channels");
    let entry = channels.and_then(|channels| channels.object_value(channel.key()));
    let entry = entry.ok_or(NOT_CONFIGURED)?;
    if membership == Membership::Out && entry.get("people").is_none() {
        return Ok(());
    }
    let people = entry.array_value_or_create("people").ok_or(NO_LIST)?;
    let meant = |entry: &CstNode| entry.to_serde_value().is_some_and(|value| is(&value, id));
    match membership {
        Membership::In if people.elements().iter().any(meant) => {}
        Membership::In => drop(people.append(CstInputValue::String(id.to_owned()))),
        Membership::Out => super::remove_elements(Some(&people), meant),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{ConfigChange, apply};
    use super::*;

    fn change(text: &str, membership: Membership, id: &str) -> Result<String, EditError> {
        let (channel, id) = (ChannelName::Telegram, id.to_owned());
        let change = match membership {
            Membership::In => ConfigChange::AddPerson { channel, id },
            Membership::Out => ConfigChange::RemovePerson { channel, id },
        };
        apply(text, &[change])
    }

    #[test]
    fn a_person_is_let_in_and_taken_out_and_everything_around_stays() {
        let file = "{\n  // who\n  \"channels\": {\n    \"telegram\": { \"token\": \"${T}\", \"people\": [1] }, // mine\n  },\n}\n";
        let added = change(file, Membership::In, "U2").unwrap();
        assert_eq!(added, file.replace("[1]", "[1, \"U2\"]"));
        assert_eq!(change(&added, Membership::In, "1").unwrap(), added);
        assert_eq!(change(&added, Membership::Out, "U2").unwrap(), file);
        assert_eq!(
            change(file, Membership::Out, "1").unwrap(),
            file.replace("[1]", "[]")
        );
        assert_eq!(change(file, Membership::Out, "9").unwrap(), file);
    }

    #[test]
    fn a_list_that_is_missing_is_made_and_a_channel_that_is_missing_is_not() {
        let file = "{\"channels\": {\"telegram\": {\"token\": \"t\"}}}";
        let added = change(file, Membership::In, "7").unwrap();
        let read = crate::config::check(std::path::Path::new("/pml.json"), &added).unwrap();
        assert_eq!(read.channels.telegram.unwrap().basics.people, ["7"]);
        assert_eq!(change(file, Membership::Out, "7").unwrap(), file);
        assert_eq!(change("{}", Membership::In, "7"), Err(NOT_CONFIGURED));
        assert_eq!(
            change(
                "{\"channels\": {\"telegram\": {\"people\": 1}}}",
                Membership::In,
                "7"
            ),
            Err(NO_LIST)
        );
    }
}
