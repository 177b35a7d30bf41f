//! `throng sync` without a store: that a folder comes back the same is shown in `toolbox/upload`.

use std::time::Duration;

use crate::child::{finish, folder, settings_file, throng};

fn check(text: &str, environment: &[(&str, &str)], parts: &[&str]) {
    let settings = settings_file("sync", text);
    let reports = folder("sync-reports");
    std::fs::write(reports.join("report.json"), "{}").expect("a folder of ours");
    let settings = settings.to_str().expect("a plain path");
    for way in ["push", "pull"] {
        let mut command = throng(&["sync", way, reports.to_str().expect("a plain path"), "--config", settings]);
        command.env_remove("AWS_ACCESS_KEY_ID").env_remove("AWS_SECRET_ACCESS_KEY");
        command.envs(environment.iter().copied());
        finish(command, Duration::from_secs(60)).check_refused(parts);
    }
}

#[test]
fn a_store_that_cannot_be_reached_is_named_with_what_to_change() {
    let key = [("AWS_ACCESS_KEY_ID", "id"), ("AWS_SECRET_ACCESS_KEY", "s3cret")];
    check("", &key, &["no store is named", "[object_store]"]);
    check(
        "[object_store]\nendpoint = \"http://127.0.0.1:9\"\n",
        &key,
        &["throng.toml:2: [object_store] endpoint: needs a bucket"],
    );
    let store = "[object_store]\nendpoint = \"http://127.0.0.1:9\"\nbucket = \"reports\"\n";
    check(store, &[], &["no key", "AWS_ACCESS_KEY_ID", "key_file"]);
    check(store, &key, &["bucket reports of http://127.0.0.1:9", "no answer"]);
}
