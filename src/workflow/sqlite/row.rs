//! The row of a workflow: how it is written and read.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use rusqlite::types::Type;
use rusqlite::{Row, Transaction, named_params};
use serde::Deserialize as _;
use serde::de::IntoDeserializer as _;
use serde::de::value::Error as ValueError;

use crate::config::{By, ChannelName, PROJECT_FILE};
use crate::protocol::Digest;
use crate::workflow::{
    Arguments, AskAttendance, Origin, Phase, State, SuspendedCall, Timestamp, Workflow, WorkflowId,
};

/// The columns [`read`] expects, in its order.
pub(super) const COLUMNS: &str = "id, code, ask, tool, arguments, launch, project, state, created_at, expires_at, config, policy, asker, \
     client, attended, revision, channel";

/// Reads the row of a workflow.
pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Workflow> {
    let state: State = json(row, 7)?;
    let arguments = match row.get::<_, Option<Vec<u8>>>(4)? {
        _ if state.phase() == Phase::Final => Arguments::Erased,
        None => Arguments::Absent,
        Some(bytes) => Arguments::Json(String::from_utf8(bytes).map_err(|error| unreadable(4, error))?),
    };
    let project = PathBuf::from(OsString::from_vec(row.get(6)?));
    let config = row.get::<_, Option<Vec<u8>>>(10)?.map(OsString::from_vec);
    Ok(Workflow {
        id: parsed(row, 0)?,
        code: parsed(row, 1)?,
        ask: json(row, 2)?,
        call: SuspendedCall {
            tool: parsed(row, 3)?,
            arguments,
            launch: digest(row, 5)?,
        },
        origin: Origin {
            config: config.map_or_else(|| project.join(PROJECT_FILE), PathBuf::from),
            by: match row.get::<_, String>(11)?.as_str() {
                "client" => By::Client,
                _ => By::Human,
            },
            asker: parsed(row, 12)?,
            // What is only shown must not make an ask unreadable.
            client: json(row, 13).unwrap_or_default(),
        },
        project,
        created_at: Timestamp::from_millis(row.get(8)?),
        expires_at: Timestamp::from_millis(row.get(9)?),
        state,
        attended: if row.get(14)? {
            AskAttendance::ByItsCall
        } else {
            AskAttendance::ByNone
        },
        revision: u64::try_from(row.get::<_, i64>(15)?).unwrap_or_default(),
        channel: row
            .get::<_, Option<String>>(16)?
            .and_then(|name| name.parse().ok()),
    })
}

/// Writes the row of a new workflow.
pub(super) fn insert(
    transaction: &Transaction<'_>,
    workflow: &Workflow,
    digests: (&Digest, &Digest),
) -> rusqlite::Result<()> {
    let (identity, likeness) = digests;
    transaction.execute(
        "INSERT INTO workflow (id, code, ask, tool, arguments, launch, project, state, phase, identity, likeness, config, policy,
                               asker, client, attended, created_at, expires_at, channel)
         VALUES (:id, :code, :ask, :tool, :arguments, :launch, :project, :state, :phase, :identity, :likeness, :config, :policy,
                 :asker, :client, :attended, :created_at, :expires_at, :channel)",
        named_params! {
            ":id": workflow.id.to_string(),
            ":code": workflow.code.as_str(),
            ":ask": written(&workflow.ask)?,
            ":tool": workflow.call.tool.to_string(),
            ":arguments": workflow.call.arguments.bytes(),
            ":launch": workflow.call.launch.as_str(),
            ":project": path_bytes(&workflow.project),
            ":state": written(&workflow.state)?,
            ":phase": phase(workflow.state.phase()),
            ":identity": identity.as_str(),
            ":likeness": likeness.as_str(),
            ":config": path_bytes(&workflow.origin.config),
            ":policy": match workflow.origin.by {
                By::Client => "client",
                By::Human => "human",
            },
            ":asker": workflow.origin.asker.to_string(),
            ":client": written(&workflow.origin.client)?,
            ":attended": workflow.attended == AskAttendance::ByItsCall,
            ":created_at": workflow.created_at.millis(),
            ":expires_at": workflow.expires_at.millis(),
            ":channel": workflow.channel.map(ChannelName::key),
        },
    )?;
    Ok(())
}

/// Returns the revision of a row, which every change of it raises.
pub(super) fn revision(transaction: &Transaction<'_>, id: WorkflowId) -> rusqlite::Result<u64> {
    let revision: i64 = transaction
        .prepare_cached("SELECT revision FROM workflow WHERE id = ?1")?
        .query_row([id.to_string()], |row| row.get(0))?;
    Ok(u64::try_from(revision).unwrap_or_default())
}

/// The ask of a row without what repeats its arguments: they leave together. An ask that is no JSON repeats nothing.
pub(super) const BARE_ASK: &str = "CASE json_valid(ask) WHEN 1 THEN
     CASE WHEN json_type(ask, '$.reach.proposed') IS NULL THEN ask ELSE json_remove(ask, '$.reach') END
     ELSE ask END";

/// Moves a row to `state`; arguments leave with the last state that could still run.
pub(super) fn update(transaction: &Transaction<'_>, id: WorkflowId, state: &State) -> rusqlite::Result<()> {
    let moved = format!(
        "UPDATE workflow SET state = :state, phase = :phase, identity = NULL,
                ask = CASE :phase WHEN 'final' THEN {BARE_ASK} ELSE ask END,
                arguments = CASE :phase WHEN 'final' THEN NULL ELSE arguments END,
                likeness = CASE :phase WHEN 'final' THEN NULL ELSE likeness END
         WHERE id = :id"
    );
    transaction.execute(
        &moved,
        named_params! {
            ":id": id.to_string(),
            ":state": written(state)?,
            ":phase": phase(state.phase()),
        },
    )?;
    Ok(())
}

/// Writes a value as the JSON of its column.
pub(super) fn written(value: &impl serde::Serialize) -> rusqlite::Result<String> {
    serde_json::to_string(value).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
}

fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Pending => "pending",
        Phase::Approved => "approved",
        Phase::Final => "final",
    }
}

/// Writes a path as it lies in its column.
pub(super) fn path_bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

fn parsed<T>(row: &Row<'_>, column: usize) -> rusqlite::Result<T>
where
    T: std::str::FromStr,
    T::Err: std::error::Error + Send + Sync + 'static,
{
    row.get::<_, String>(column)?
        .parse()
        .map_err(|error| unreadable(column, error))
}

fn json<T: serde::de::DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    serde_json::from_str(&row.get::<_, String>(column)?).map_err(|error| unreadable(column, error))
}

fn digest(row: &Row<'_>, column: usize) -> rusqlite::Result<Digest> {
    Digest::deserialize(row.get::<_, String>(column)?.into_deserializer())
        .map_err(|error: ValueError| unreadable(column, error))
}

fn unreadable(column: usize, error: impl std::error::Error + Send + Sync + 'static) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(error))
}
