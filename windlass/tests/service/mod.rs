//! The service of the Debian package where no systemd is: `systemctl` does what the unit says.

use std::fs;
use std::path::Path;

const DEBIAN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/debian");

/// Lays out what the package has, with `here` in place of its paths. Returns the programs that stand in for the
/// system's, as shell scripts.
pub(crate) fn lay(folder: &Path, here: impl Fn(&str) -> String) -> [(&'static str, String); 2] {
    let read = |name: &str| here(&fs::read_to_string(Path::new(DEBIAN).join(name)).unwrap());
    fs::write(folder.join("etc/windlass.yaml"), read("windlass.yaml")).unwrap();
    fs::write(folder.join("windlass.service"), read("windlass.service")).unwrap();
    let systemctl = SYSTEMCTL.replace("FOLDER", folder.to_str().unwrap());
    [("systemctl", systemctl), ("runuser", "shift 3\nexec \"$@\"\n".to_owned())]
}

/// Starts, restarts and reloads the service; `pids` has what the test ends.
const SYSTEMCTL: &str = r#"
pid=FOLDER/windlass.pid
journal=FOLDER/journal
commands() { sed -n "s/^$1=//p" FOLDER/windlass.service; }
count() { grep -c "configuration read again" $journal || true; }
until_so() { for _ in $(seq 200); do "$@" && return; sleep 0.1; done; cat $journal >&2; exit 1; }
serves() { grep -q "Windlass is running" $journal; }
has_read() { [ "$(count)" -gt $before ]; }
stop() { [ ! -e $pid ] || { kill -TERM $(cat $pid); tail --pid=$(cat $pid) -f /dev/null; rm $pid; }; }
start() {
    commands ExecStartPre | sh -e > $journal 2>&1 || { cat $journal >&2; exit 1; }
    sh -c "exec $(commands ExecStart)" >> $journal 2>&1 &
    echo $! | tee -a pids > $pid
    until_so serves
}
reload() {
    export MAINPID=$(cat $pid)
    before=$(count)
    commands ExecReload | sh -e >> $journal 2>&1 || { cat $journal >&2; exit 1; }
    until_so has_read
}
[ "$2" = windlass ] || exit 1
case $1 in
start) start ;;
restart) stop; start ;;
reload) reload ;;
*) exit 1 ;;
esac
"#;
