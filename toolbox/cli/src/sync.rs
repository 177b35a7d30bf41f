//! `sync`: a folder of captures or reports to the object store, and back.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use throng::settings::{AnySection, Settings};
use throng_upload::{
    folder::{self, Moved},
    store::Store,
};

use crate::{
    outcome::{CommandResult, Verdict},
    output::{remark, say},
};

#[derive(Args)]
pub struct SyncArguments {
    #[command(subcommand)]
    command: SyncCommand,
}

#[derive(Subcommand)]
enum SyncCommand {
    /// Copies a folder into the store of `[object_store]`, below its prefix. What is there already is not sent again, and nothing
    /// is removed.
    Push(FolderArguments),
    /// Copies what is in the store into a folder, which is made. What is the same stays, and nothing is removed.
    Pull(FolderArguments),
}

#[derive(Args)]
struct FolderArguments {
    /// The folder on this host.
    folder: PathBuf,
    /// Where it is in the store, below the prefix of the settings. Default: the folder's own name.
    #[arg(long, value_name = "PATH")]
    at: Option<String>,
    /// Settings. Without it `throng.toml` in the folder that the command is started in.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: SyncArguments) -> CommandResult {
    let (is_push, arguments) = match arguments.command {
        SyncCommand::Push(arguments) => (true, arguments),
        SyncCommand::Pull(arguments) => (false, arguments),
    };
    let FolderArguments { folder, at, config, json } = arguments;
    let (settings, AnySection {}) = Settings::find(config.as_deref())?;
    let store = Store::of(&settings.object_store)?.ok_or_else(|| {
        format!("{}: no store is named; write endpoint and bucket into [object_store]", settings.source())
    })?;
    let at = match at {
        Some(at) => at,
        None => own_name(&folder)?,
    };
    let prefix = format!("{}{}", folder::as_folder(&settings.object_store.prefix), at.trim_matches('/'));
    let moved = if is_push {
        folder::push(&store, &folder, &prefix, |file| {
            if !json {
                remark(format_args!("sent {}", file.name))
            }
        })
    } else {
        folder::pull(&store, &prefix, &folder, |name| {
            if !json {
                remark(format_args!("got {name}"))
            }
        })
    };
    let Moved { files, bytes, same } = moved?;
    if json {
        say(serde_json::json!({ "files": files, "bytes": bytes, "same": same, "prefix": prefix }))?;
    } else {
        let way = if is_push { "sent to" } else { "got from" };
        remark(format_args!("{files} files with {bytes} bytes {way} {prefix}, {same} were the same"));
    }
    Ok(Verdict::Fine)
}

/// What the folder itself is called.
fn own_name(folder: &std::path::Path) -> Result<String, String> {
    let whole = std::path::absolute(folder).map_err(|cause| format!("{}: {cause}", folder.display()))?;
    let name = whole.file_name().and_then(|name| name.to_str());
    name.map(str::to_owned).ok_or_else(|| format!("{}: say with --at where it is in the store", folder.display()))
}
