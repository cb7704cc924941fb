//! The command line of `pml`: every command and its help text.

use clap::Subcommand;

use super::{
    add, answer, approve, audit, call, channels, check, completions, demo, diff, doctor, gc, history, import,
    inbox, init, install, list, lock, man, outdated, pending, refuse, remove, rule, rules, run, sbom, serve,
    supervise, trust, uninstall, upgrade, verify,
};

/// How rules weigh, told wherever rules are made.
const RULES_HELP: &str = "\
How rules weigh: deny always wins; otherwise the most specific pattern does
(an exact name, then the pattern with more literal characters; of two that
weigh the same, the one with `@readonly`); a tie asks; no rule asks.
Patterns: `*`, `?`, `{a,b}`, `[a-z]`; `server` is `server:*`.
`@readonly` at the end of an allowed pattern means only tools that say of
themselves that they read, by the definitions you accepted: `*@readonly`.
`client:Bash(git status)` means commands of the client's shell that begin with
these words and are nothing more; in deny and ask, wherever the words stand.";

/// Every command, in the order of `pml --help`.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Write a commented `.pml.json`, offer to import servers, and register pml in clients
    #[command(after_help = "\
Examples:
  pml init                             offers the import if clients have servers, else registers pml in .mcp.json
  pml init --yes                       does not ask
  pml init --client codex              registers pml in this client, in the user's file where there is one
  pml init --all                       in every client that is found

An existing .pml.json is left as it is. To take registrations back: pml import --undo.")]
    Init(init::InitArguments),
    /// Bring the servers of your clients behind pml, which takes their place there
    #[command(after_help = "\
Clients: claude (user, local and project scope), claude-desktop, cursor, vscode, copilot,
codex, gemini, windsurf, zed, junie, opencode, amp; goose is read, and what to write there
is printed.

Examples:
  pml import                           every client that has servers
  pml import codex cursor
  pml import --dry-run                 shows what would be done
  pml import --from ~/mcp.json --user
  pml import --undo                    every file as it was before

Shows what each server becomes, and asks. Versions become exact; a secret in the clear
becomes ${NAME}; what cannot be taken or does not work stays in its client, with the
reason. Servers of your own files go into your own pml.json, those of a project into its
.pml.json.
Exit code: 0 done, 1 refused or not all of it done, 2 error.")]
    Import(import::ImportArguments),
    /// Find clients that bypass pml, stale paths to it, and what else keeps servers from working
    #[command(after_help = "\
Examples:
  pml doctor
  pml doctor --json

Changes nothing. Exit code: 0 nothing is wrong, 1 something is, 2 error.")]
    Doctor(doctor::DoctorArguments),
    /// Declare a server at an exact version, install it and learn its tools
    #[command(after_help = "\
Examples:
  pml add time -- uvx mcp-server-time
  pml add files -- npx -y @modelcontextprotocol/server-filesystem .
  pml add files --package npm:@modelcontextprotocol/server-filesystem -- .
  pml add docs --url https://example.com/mcp --header 'Authorization: Bearer ${TOKEN}'
  pml add mine --env 'TOKEN=${MY_TOKEN}' -- ./server --verbose
  pml add time --now -- uvx mcp-server-time==2026.10.19

Shows what will be written and run, and asks. Whatever fails leaves the file as it was.
Exit code: 0 added, 1 refused, 2 error.")]
    Add(add::AddArguments),
    /// Take a server out of the configuration
    #[command(after_help = "\
Examples:
  pml remove time
  pml remove --user time               from the user's file

What is installed and approved stays. To be rid of that too: pml uninstall NAME, then pml remove NAME.")]
    Remove(remove::RemoveArguments),
    /// List the declared servers: version, installed, approved, tools, and what is wrong with them
    #[command(after_help = "\
Examples:
  pml list
  pml list --tools                     with the tools, and what a call of each would do and why
  pml list --cost                      what their definitions cost a model's context, and the heaviest tools
  pml list --json

APPROVED: `yes` by a person, `by rule` every tool is allowed, `no` nobody approved it, `denied` by the rules.
CALLS: `run` without a question, `ask first` before the first use, `ask each` before every call, `never`, or `mixed`.")]
    List(list::ListArguments),
    /// Serve an MCP client on standard input and output
    #[command(after_help = "\
A client starts this; people do not. To register it in Claude Code:
  claude mcp add pml -- pml stdio

Logs go to stderr; `PML_LOG=debug` shows more of them.")]
    Stdio,
    /// Fetch the packages of servers before anybody calls them
    #[command(after_help = "\
Examples:
  pml install                          every declared server
  pml install time files
  pml install --yes time               does not ask
  pml install --now time               also if its version was published too short a time ago

Asks before it fetches what no rule allows and nobody approved; a denied server is refused.
Exit code: 0 installed, 1 refused, 2 error.")]
    Install(install::InstallArguments),
    /// Remove the package of a server, and the approval to run it
    Uninstall(uninstall::UninstallArguments),
    /// Remove the packages that no configuration declares any more
    #[command(after_help = "\
Looks at the files of this place and at every one of which a server was ever accepted. Approvals stay.

Examples:
  pml gc --dry-run                     says what would be removed, with sizes
  pml gc --yes                         does not ask

Exit code: 0 done, 1 you said no, 2 error.")]
    Gc(gc::GcArguments),
    /// Write what every server is into `.pml.lock`, to be committed and reviewed
    #[command(after_help = "\
The lock names each server's exact version, its integrity, everything that is installed with it, and its tools with
their descriptions and schemas, one fact per line. It grants nothing: what runs is compared with it where you have
accepted nothing yet, and a difference asks. Packages are resolved; nothing of them is fetched or run.

Examples:
  pml lock                             every declared server
  pml lock --check                     changes nothing; exit code 1 if a lock is not up to date
  pml lock --upgrade time              its newest version, in the configuration and the lock; installs nothing
  pml lock --all                       the same for every server
  pml lock --now --upgrade time        also if it was published too short a time ago

Exit code: 0 done, 1 not up to date or refused, 2 error.")]
    Lock(lock::LockArguments),
    /// List the servers that have newer versions
    #[command(after_help = "\
Examples:
  pml outdated
  pml outdated --json time

Exit code: 0 every server is at its newest version, 1 one is not, 2 error.")]
    Outdated(outdated::OutdatedArguments),
    /// Show what differs between a server as you accepted it and as it is now, or its newest version
    #[command(after_help = "\
Shows versions, packages more and less, install scripts, where it was built, and the text of changed tools.

Examples:
  pml diff files                       what waits to be accepted, else what an upgrade would bring
  pml diff files --to 2.1.0            another version; nothing of it is fetched or run

Exit code: 0 nothing differs, 1 something does, 2 error.")]
    Diff(diff::DiffArguments),
    /// Give a server a newer version: see what changes, agree, and only then is it declared
    #[command(after_help = "\
Examples:
  pml upgrade files
  pml upgrade files --to 2.1.0         this version; an older one goes back
  pml upgrade --yes files              does not ask
  pml upgrade --now files              also if it was published too short a time ago

Asks after the difference, installs and starts the new version, and asks again if its tools differ. Until then the
old version stays declared and installed. The words and variables of the declaration stay as they are.
Exit code: 0 done, 1 refused, 2 error.")]
    Upgrade(upgrade::UpgradeArguments),
    /// Look for known vulnerabilities of everything that is installed, and stop what is malicious
    #[command(after_help = audit::HELP)]
    Audit(audit::AuditArguments),
    /// Print the bill of materials of what is installed, as CycloneDX
    #[command(after_help = sbom::HELP)]
    Sbom(sbom::SbomArguments),
    /// Compare what is installed with what was installed, file by file
    #[command(after_help = verify::HELP)]
    Verify(verify::VerifyArguments),
    /// Let tools run without a question
    #[command(after_help = format!("\
Examples:
  pml allow filesystem:read_file       one tool
  pml allow filesystem                 every tool of a server
  pml allow 'github:{{get,list}}_*'      several, by a pattern
  pml allow '*@readonly'               everything that only reads
  pml allow 'client:Bash(git status)'  a command of the client, in `pml run` and its permission prompt
  pml allow --user time                in every project of yours

{RULES_HELP}"))]
    Allow(rule::RuleArguments),
    /// Never let tools run
    #[command(after_help = format!("\
Examples:
  pml deny 'github:delete_*'           whatever deletes
  pml deny --user shell                a whole server, in every project of yours

{RULES_HELP}"))]
    Deny(rule::RuleArguments),
    /// Ask a person before every call of tools
    #[command(after_help = format!("\
Examples:
  pml ask 'filesystem:write_*'         before every write
  pml ask '*'                          before anything is first installed or started

{RULES_HELP}"))]
    Ask(rule::RuleArguments),
    /// Take patterns out of every list
    #[command(after_help = "\
Examples:
  pml forget filesystem:read_file
  pml forget --user 'github:delete_*'

To see what is written where: pml rules")]
    Forget(rule::ForgetArguments),
    /// Show what the project's file wants, and accept it as your own word
    #[command(after_help = "\
A file that came with a repository may declare servers and forbid. Its allow rules, the variables it hands to
servers and its other settings have no effect until you accept it, exactly as it is; a change asks again.

Examples:
  pml trust                            shows what it wants, and asks
  pml trust --yes                      does not ask
  pml trust --list                     what you accepted, in every project")]
    Trust(trust::TrustArguments),
    /// Take back that a project's file is accepted
    #[command(after_help = "\
Examples:
  pml untrust                          the file of this project
  pml untrust ~/shop/.pml.json")]
    Untrust(trust::UntrustArguments),
    /// Call a tool of a server, through the same rules and questions as a client
    #[command(after_help = "\
Asks you here what a client would have asked. What the server writes to stderr is its log, as always.

Examples:
  pml call time get_current_time '{\"timezone\": \"Europe/Berlin\"}'
  pml call --json files list_directory '{\"path\": \".\"}'

Exit code: 0 it did, 1 it failed, was refused or waits for you, 2 error.")]
    Call(call::CallArguments),
    /// Say what a call of a tool would do, and which rule or approval decides that
    #[command(after_help = "\
Examples:
  pml check filesystem:read_file
  pml check filesystem__read_file      as the client spells it
  pml check 'client:Bash(git status)'  a command of the client's shell
  pml check --json github:get_issue

Exit code: 0 it runs, 1 it asks or is denied, 2 error.")]
    Check(check::CheckArguments),
    /// List the rules of every file, the strongest first
    #[command(after_help = "\
Read it from the top: the first rule that covers a tool decides.

Examples:
  pml rules
  pml rules --json")]
    Rules(rules::RulesArguments),
    /// Answer every agent on one screen: approvals and questions, in every project of yours
    #[command(after_help = inbox::HELP)]
    Inbox(inbox::InboxArguments),
    /// List what waits for your answer: calls to approve, questions of a model
    #[command(after_help = "\
Shows what would run, in every project of yours, the oldest first. Of long
arguments both ends are shown, and a line says so; with a CODE and with --json
they are whole. Secrets are hidden, and say how many characters they have.

Examples:
  pml pending
  pml pending abcde                    one ask, with all of its arguments
  pml pending --json

Then: pml approve CODE, pml refuse CODE or pml answer CODE.")]
    Pending(pending::PendingArguments),
    /// Show how the chat channels stand, try one out, and say who is heard there
    #[command(after_help = "\
Channels are set up in your own file (docs/CHANNELS.md) and connected while `pml serve` runs.

Examples:
  pml channels                         each one: connected or not, its people, what waits, the last error
  pml channels test slack              puts a question there and waits for the answer
  pml channels pair ABCDE              lets in the one whom a channel told this code
  pml channels unpair telegram 412587349

Exit code: 0 done, 1 refused or no answer, 2 error.")]
    Channels(channels::ChannelsArguments),
    /// Let a call run that waits for you
    #[command(after_help = approve::HELP)]
    Approve(approve::ApproveArguments),
    /// Do not let a call run that waits for you, or do not answer a question
    #[command(after_help = "\
Examples:
  pml refuse                           the only ask that waits
  pml refuse abcde
  pml refuse abcde --reason 'use the staging server'

It is this call that is refused; to refuse every one: pml deny PATTERN
Exit code: 0 refused, 1 too late or unknown, 2 error.")]
    Refuse(refuse::RefuseArguments),
    /// Answer a question of a model
    #[command(after_help = "\
Examples:
  pml answer                           the only question that waits, in a terminal
  pml answer abcde                     in a terminal: shows the question and its options
  pml answer abcde 1                   the first option
  pml answer abcde Yes                 an option, as it is written
  pml answer abcde Red Blue            several, where several may be chosen
  pml answer abcde --text 'neither'    your own words
  pml answer abcde --answers '[{\"labels\": [\"Yes\"]}, {\"text\": \"neither\"}]'

Exit code: 0 answered, 1 too late, unknown, or not for you to say, 2 error.")]
    Answer(answer::AnswerArguments),
    /// List what was asked, what came of it, and who decided; verify or prune the record of it
    #[command(
        alias = "log",
        after_help = "\
BY is the road on which the answer came: dialog, elicitation, prompt, continuation, cli, web, chat or rule.
Only `continuation` is the word of a model. What was asked is listed for a day after its deadline.

Beside that list pml keeps a record of every ask, answer, changed rule, trust, installation, start, end and refusal,
as lines of JSON in ~/.local/state/pml/history. Each names the hash of the one before.

Examples:
  pml history
  pml history --limit 5
  pml history --json                   with reasons, and answers to questions
  pml history verify                   finds lines of the record that were removed, edited or moved
  pml history prune --older 90d        removes old parts of the record"
    )]
    History(history::HistoryArguments),
    /// Show what waits on a page in your browser, and take your answers there
    #[command(after_help = "\
Examples:
  pml serve --open                     serves the page and opens it; Ctrl+C ends it
  pml serve --port 4100                always at the same port
  pml serve --json                     one line of JSON: url, port, pid
  pml serve --allow-host inbox.example.org
                                       behind your own TLS proxy of that name
  pml serve token --pid 4711           lets a process put questions over HTTP while it lives

One runs for each user, on 127.0.0.1 alone. The address opens the page once, within five minutes; while it runs,
`pml serve --open` opens it again. Scripts use the token in ~/.local/state/pml/serve.token: see docs/INBOX.md.
Exit code: 0 ended, or opened the page of the one that runs; 1 one runs already; 2 error.")]
    Serve(serve::ServeArguments),
    /// Run Claude Code with you attached: it works, asks when it must, and waits for your answer
    #[command(after_help = run::HELP)]
    Run(run::RunArguments),
    /// List the runs: what each of them does, or waits for
    #[command(after_help = "\
Examples:
  pml runs
  pml runs --json")]
    Runs(run::RunsArguments),
    /// Print the JSON Schema of `.pml.json`
    #[command(after_help = "\
Examples:
  pml schema > pml.schema.json         then name it as \"$schema\" in .pml.json: editors complete and check")]
    Schema,
    /// Show in this terminal how pml asks and continues; needs no client and no network
    #[command(after_help = "\
Examples:
  pml demo
  pml demo --wire                      with the JSON-RPC lines
  pml demo --answer always             without asking you

Everything happens in a temporary folder with a temporary home.")]
    Demo(demo::DemoArguments),
    /// Print the completions of a shell, or put them where it looks for them
    #[command(after_help = "\
Examples:
  pml completions --install            for the shell you use
  pml completions --install fish
  pml completions --uninstall          removes what --install wrote
  pml completions zsh > ~/.zfunc/_pml")]
    Completions(completions::CompletionsArguments),
}

/// What pml starts of itself; no person needs these, and they must run without a home.
#[derive(Debug, Subcommand)]
pub(super) enum InternalCommand {
    #[command(hide = true)]
    Supervise(supervise::Supervise),
    #[command(hide = true)]
    Launch(supervise::LaunchCommand),
    #[command(hide = true)]
    SampleServer,
    /// Write the manual pages of pml into a directory
    #[command(hide = true)]
    Man(man::ManArguments),
}
