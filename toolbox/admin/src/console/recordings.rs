//! Commands about recordings: what enters a server's worlds is written into files, or no longer.

use serde_json::json;
use throng::{
    recording::{RecordingControl, RecordingStatus},
    server::ServerControl,
};

use super::{Call, Console, Outcome};
use crate::access::Role;

impl Console {
    pub(super) fn with_recordings(self, control: &ServerControl) -> Self {
        let [start, stop, status] = [(); 3].map(|()| control.recording().clone());
        let help = "records what enters the worlds from now on, into the folder of [recording]";
        self.with_arguments("recording.start", Role::Operate, (), help, move |call, ()| {
            start.start().map_err(|error| error.to_string())?;
            Ok(told(call, &start))
        })
        .with_arguments("recording.stop", Role::Operate, (), "ends the recording", move |call, ()| {
            stop.stop().map_err(|error| error.to_string())?;
            Ok(told(call, &stop))
        })
        .with_arguments(
            "recording.status",
            Role::Observe,
            (),
            "whether what enters the worlds is recorded, how much is written, and what was lost",
            move |call, ()| -> Outcome { Ok(told(call, &status)) },
        )
    }
}

fn told(call: &Call<'_>, control: &RecordingControl) -> String {
    let status = control.status();
    call.answer(|| text(&status), || object(&status))
}

fn text(status: &RecordingStatus) -> String {
    let Some(folder) = &status.folder else {
        return "nothing is recorded: [recording] folder in the settings says where to".to_owned();
    };
    let is = if status.is_on { "is recorded" } else { "is not recorded" };
    format!(
        "what enters the worlds {is}, into {}: {} worlds now; {} bytes in {} segments since the start, {} of these dropped for \
         room; {} parts, {} lost with {} bytes; {} bytes wait; {} errors of the disk",
        folder.display(),
        status.worlds,
        status.bytes_written,
        status.segments,
        status.segments_dropped,
        status.parts,
        status.parts_lost,
        status.bytes_lost,
        status.waiting_bytes,
        status.write_errors
    )
}

fn object(status: &RecordingStatus) -> serde_json::Value {
    json!({
        "is_on": status.is_on,
        "folder": status.folder,
        "worlds": status.worlds,
        "bytes_written": status.bytes_written,
        "segments": status.segments,
        "segments_dropped": status.segments_dropped,
        "parts": status.parts,
        "parts_lost": status.parts_lost,
        "bytes_lost": status.bytes_lost,
        "waiting_bytes": status.waiting_bytes,
        "write_errors": status.write_errors,
    })
}
