//! TOML: the edit is made on a document that keeps comments, order and spaces.

use serde_json::{Map, Number, Value};
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike};

use super::{Change, not_an_object};

pub(super) fn values(text: &str) -> Result<Map<String, Value>, String> {
    Ok(table(parsed(text)?.as_table()))
}

fn parsed(text: &str) -> Result<DocumentMut, String> {
    text.parse::<DocumentMut>()
        // Its text repeats the line, which may hold a secret.
        .map_err(|error| match error.span() {
            Some(span) => {
                let line = text.get(..span.start).unwrap_or(text).matches('\n').count() + 1;
                format!("line {line}: {}", error.message())
            }
            None => error.message().to_owned(),
        })
}

fn table(table: &dyn TableLike) -> Map<String, Value> {
    table
        .iter()
        .filter_map(|(key, item)| Some((key.to_owned(), value(item)?)))
        .collect()
}

fn value(item: &Item) -> Option<Value> {
    match item {
        Item::None => None,
        Item::Table(found) => Some(Value::Object(table(found))),
        Item::ArrayOfTables(tables) => Some(tables.iter().map(|found| Value::Object(table(found))).collect()),
        Item::Value(found) => Some(plain(found)),
    }
}

fn plain(value: &toml_edit::Value) -> Value {
    match value {
        toml_edit::Value::String(text) => Value::from(text.value().as_str()),
        toml_edit::Value::Integer(number) => Value::from(*number.value()),
        toml_edit::Value::Float(number) => {
            Number::from_f64(*number.value()).map_or(Value::Null, Value::Number)
        }
        toml_edit::Value::Boolean(boolean) => Value::from(*boolean.value()),
        toml_edit::Value::Datetime(time) => Value::from(time.value().to_string()),
        toml_edit::Value::Array(elements) => elements.iter().map(plain).collect(),
        toml_edit::Value::InlineTable(found) => Value::Object(table(found)),
    }
}

pub(super) fn edited(text: &str, key: &[String], changes: &[Change]) -> Result<String, String> {
    let returns = text.matches("\r\n").count();
    if returns > 0 && returns < text.matches('\n').count() {
        return Err("its lines end in two ways; save it with one of them".to_owned());
    }
    // The document writes every line end as `\n`.
    let plain = text.replace("\r\n", "\n");
    let mut document = parsed(&plain)?;
    if document.to_string() != plain {
        return Err("it cannot be edited without a change elsewhere in it".to_owned());
    }
    change(document.as_table_mut(), key, changes)?;
    let edited = document.to_string();
    Ok(if returns > 0 {
        edited.replace('\n', "\r\n")
    } else {
        edited
    })
}

fn change(place: &mut dyn TableLike, key: &[String], changes: &[Change]) -> Result<(), String> {
    let Some((step, rest)) = key.split_first() else {
        for change in changes {
            match change {
                Change::Remove(name) => drop(place.remove(name)),
                Change::Put(name, entry) => drop(place.insert(name, item(entry)?)),
            }
        }
        return Ok(());
    };
    let next = place.entry(step).or_insert_with(|| {
        let mut table = Table::new();
        // Its own header says nothing.
        table.set_implicit(true);
        Item::Table(table)
    });
    if rest.is_empty() && next.is_inline_table() {
        // A table with a header of its own cannot stand inside of braces.
        let table = next.as_table_like_mut().ok_or_else(|| not_an_object(step))?;
        for change in changes {
            match change {
                Change::Remove(name) => drop(table.remove(name)),
                Change::Put(name, entry) => {
                    drop(table.insert(name, Item::Value(inline(entry)?)));
                }
            }
        }
        return Ok(());
    }
    change(
        next.as_table_like_mut().ok_or_else(|| not_an_object(step))?,
        rest,
        changes,
    )
}

/// Writes a server as a table with a header, and what it holds as values.
fn item(entry: &Value) -> Result<Item, String> {
    let Value::Object(members) = entry else {
        return Ok(Item::Value(inline(entry)?));
    };
    let mut table = Table::new();
    for (name, value) in members {
        table.insert(name, Item::Value(inline(value)?));
    }
    Ok(Item::Table(table))
}

fn inline(value: &Value) -> Result<toml_edit::Value, String> {
    Ok(match value {
        Value::Null => return Err("TOML has no null".to_owned()),
        Value::Bool(value) => (*value).into(),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => number.into(),
            (None, Some(number)) => number.into(),
            (None, None) => return Err("TOML has no such number".to_owned()),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(elements) => {
            let elements: Vec<_> = elements.iter().map(inline).collect::<Result<_, _>>()?;
            toml_edit::Value::Array(Array::from_iter(elements))
        }
        Value::Object(members) => {
            let mut table = InlineTable::new();
            for (name, value) in members {
                table.insert(name, inline(value)?);
            }
            toml_edit::Value::InlineTable(table)
        }
    })
}
