use windlass_sfu::share_of_one;
use windlass_sr::EngineChoice;
use windlass_types::AnchorPolicy;

use super::*;

/// What a file says, checked.
fn parse(text: &str) -> Result<Settings> {
    Ok(File::parse(text)?.settings)
}

const ALL: &str = r#"
    public: calls.example
    http: "0.0.0.0:80"
    udp: "[::]:7881"
    tcp: "[::]:443"
    advertise: ["192.0.2.1:7881", "2001:db8::1", "tcp:192.0.2.1:443"]
    tls: /etc/windlass/cert.pem,/etc/windlass/key.pem
    trusted-proxies: [10.0.0.0/8, "::1"]
    turn-url: ["turn:anna:south@turn.example.org:3478"]
    turn-secret: "north"
    token-key: ["k1=0123456789abcdef0123456789abcdef"]
    open-rooms: false
    admin-local: true
    origins: ["https://calls.example", "http://localhost:5173"]
    record-to: /var/lib/windlass/recordings
    webhook: ["https://example.org/windlass"]
    webhook-secret: ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]
    max-participants: 10
    max-total-participants: 100
    max-per-ip: sockets=50,joins=60,stun=70
    drain-timeout: 1m
    device: "0:1,GPU-8932f937"
    budget: 150ms
    network: "auto"
    policy: "latency-sensitive,lectures=cost-effective,a=b=quality-sla:1.5"
    captured: layers,learn,adapt
    max-enhanced: 8
    workers: ["https://10.0.0.7:7890"]
    nats: ["tls://10.0.0.9:4222"]
    nats-credentials: /etc/windlass/nats.creds
    nats-ca: /etc/windlass/nats-ca.pem
    cluster-token: "0123456789abcdef"
    cluster-tls: /etc/windlass/ca.pem,/etc/windlass/cluster.pem,/etc/windlass/cluster-key.pem
    node-url: wss://sfu-2.example.org/ws
    node-listen: 10.0.0.2:7883,https://10.0.0.2:7883
    node-max-participants: 50
    metrics: 127.0.0.1:7882
    log: "debug"
    log-json: true
    turn-ttl: 10m
    forwarding-threads: 3
    no-congestion-control: true
    enhancer-threads: 4
    compute-cap: 0.5
    anchor-fraction: 0.1
    enhancer-memory-mb: 512
"#;

#[test]
fn a_file_has_the_names_of_the_options() {
    let settings = parse(ALL).unwrap();
    // Every field is set, so that a new one is not forgotten here or in `over`.
    let debug = format!("{:?}", Settings::default().over(settings.clone()));
    assert!(!debug.contains("None"), "{debug}");
    assert_eq!(settings.clone().over(Settings::default()), settings);
}

#[test]
fn every_option_is_in_the_test_of_all_keys() {
    let options = annotated::options();
    assert!(options.len() <= 45, "{} options are more than anybody reads", options.len());
    for option in options {
        assert!(ALL.contains(&format!("\n    {}: ", option.name)), "{}", option.name);
    }
}

#[test]
fn an_error_in_a_file_says_where_what_and_what_is_allowed() {
    for (text, expected) in [
        ("budgets: 150ms", "line 1, column 10: `budgets` is no option; did you mean `budget`?"),
        (
            "# a\nmax_enhanced: 1",
            "line 2, column 15: `max_enhanced` is no option; did you mean `max-enhanced`?",
        ),
        (
            "maxenhanced: 1",
            "line 1, column 14: `maxenhanced` is no option; did you mean `max-enhanced`?",
        ),
        ("colour: 1", "`windlass config --annotated` lists them all"),
        (
            "open-rooms: true\nbudget: 10ms",
            "line 2, column 9: budget must be from 50ms to 2s, not 10ms",
        ),
        ("log: info\nhttp: 80", "line 2, column 7: http must be IP:PORT"),
        ("budget: soon", "line 1, column 9: budget: "),
        ("budget: 150", "`150` is no time: write a number with its unit"),
        ("max-enhanced: 1\ndevice: gpu", "line 2, column 9: device: "),
        ("advertise:\n  - 192.0.2.1\n  - example", "line 3, column 5: advertise: "),
        ("log: info\nadvertise: example", "line 2, column 12: advertise: "),
        ("log: info\nadvertise: 5", "line 2, column 12: advertise: "),
        ("max-enhanced: 1\nmax-enhanced: 2", "line 2, column 1"),
        ("budget = 150ms", "line 1, column 1"),
        ("log: 'a=b=c'", "line 1, column 6: log "),
    ] {
        let error = format!("{:#}", parse(text).unwrap_err());
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn a_list_of_one_may_be_written_as_its_value() {
    for (value, list) in [
        ("advertise: 192.0.2.1", "advertise: [192.0.2.1]"),
        ("advertise: 192.0.2.1, tcp:192.0.2.2", "advertise: [192.0.2.1, 'tcp:192.0.2.2']"),
        ("origins: https://a.example", "origins: ['https://a.example']"),
        (
            "token-key: k1=0123456789abcdef0123456789abcdef",
            "token-key: [k1=0123456789abcdef0123456789abcdef]",
        ),
        ("trusted-proxies: 10.0.0.1", "trusted-proxies:\n  - 10.0.0.1"),
        ("advertise:", "log:"),
    ] {
        assert_eq!(parse(value).unwrap(), parse(list).unwrap(), "{value}");
    }
}

#[test]
fn a_file_may_be_empty() {
    for text in ["", "\n", "# nothing\n"] {
        assert_eq!(parse(text).unwrap(), Settings::default());
    }
}

#[test]
fn values_out_of_range_are_refused_by_name() {
    for (text, name) in [
        ("budget: 10ms", "budget"),
        ("max-participants: many", "column 19: max-participants must be a whole number"),
        ("max-participants: -3", "max-participants must be a whole number"),
        ("max-participants: [1, 2]", "max-participants must be a whole number"),
        ("open-rooms: maybe", "open-rooms must be true or false"),
        ("compute-cap: lots", "compute-cap must be a share, 0 to 1"),
        ("http: here", "http must be IP:PORT"),
        ("max-participants: 0", "max-participants"),
        ("forwarding-threads: 0", "must be from 1 to 64, not 0"),
        ("compute-cap: 1.5", "compute-cap"),
        ("anchor-fraction: -0.1", "anchor-fraction"),
        ("anchor-fraction: .nan", "anchor-fraction"),
        ("device: \"gpu\"", "auto, cpu, cuda"),
        ("device: \"nvidia0\"", "windlass devices"),
        ("device: \"0,cpu\"", "windlass devices"),
        ("captured: learn", "layers,learn"),
        ("captured: layers,all", "none of layers, stills"),
        ("max-per-ip: joins", "write sockets=N"),
        ("max-per-ip: rooms=1", "none of sockets, joins, stun"),
        ("max-per-ip: sockets=10,sockets=0", "two limits of sockets"),
        ("network: \"l\"", "auto, xs, m"),
        ("enhancer-threads: 0", "enhancer-threads"),
        ("token-key: [\"k1=short\"]", "32 bytes"),
        ("webhook: [\"https://example.org\"]", "webhook-secret"),
        ("webhook: [\"example.org\"]", "http:// or https://"),
        ("webhook-secret: [\"hunter2\"]", "whsec_"),
        ("token-key: [\"k1=@/no/such/file\"]", "cannot read"),
        ("tls: a.pem", "neither CERT,KEY nor acme"),
        ("tls: a.pem,", "neither CERT,KEY nor acme"),
        ("tls: acme:http://ca.example/dir", "neither CERT,KEY nor acme"),
        ("tls: acme", "acme needs public"),
        ("public: https://calls.example", "no DNS name"),
        ("cluster-tls: a.pem,b.pem", "not CA,CERT,KEY"),
        ("trusted-proxies: [10.0.0.0/40]", "neither IP nor IP/PREFIX"),
        (
            "open-rooms: true\ntoken-key: [\"k1=0123456789abcdef0123456789abcdef\"]",
            "beside token-key",
        ),
        ("origins: [\"calls.example\"]", "an origin must be"),
        ("advertise: [\"0.0.0.0\"]", "0.0.0.0"),
        ("advertise: [\"example\"]", "example"),
    ] {
        let error = match parse(text).and_then(Config::resolve) {
            Ok(_) => panic!("{text} was taken"),
            Err(error) => format!("{error:#}"),
        };
        assert!(error.contains(name), "{text}: {error}");
    }
}

#[test]
fn a_publishers_own_pictures_are_used_as_far_as_is_said() {
    let uses = |text: &str| {
        let config = Config::resolve(parse(text).unwrap()).unwrap();
        let (sfu, learn) = (config.sfu, config.enhancer.unwrap().learn);
        (sfu.captured, sfu.regions, learn, sfu.adapt)
    };
    assert_eq!(uses(""), (true, true, true, false));
    assert_eq!(uses("captured: off"), (false, false, false, false));
    assert_eq!(uses("captured: layers"), (true, false, false, false));
    assert_eq!(uses("captured: layers,stills,learn,adapt"), (true, true, true, true));
}

#[test]
fn gpus_are_named_where_the_engine_is() {
    let config = |text: &str| Config::resolve(parse(text).unwrap()).unwrap();
    let engine = |text: &str| config(text).enhancer.map(|enhancer| enhancer.engine);
    assert_eq!(engine(""), Some(EngineChoice::Cpu));
    assert_eq!(engine("device: auto"), Some(EngineChoice::Auto));
    assert_eq!(engine("device: off"), None);
    assert_eq!(engine("device: 0:1"), Some(EngineChoice::Cuda));
    let devices = config("device: GPU-8932f937,1").devices;
    assert_eq!(devices, ["GPU-8932f937", "1"].map(|name| name.parse().unwrap()));
}

#[test]
fn threads_bound_inference_and_what_is_beside_it() {
    let enhancer = |text: &str| Config::resolve(parse(text).unwrap()).unwrap().enhancer.unwrap();
    let (usual, three) = (enhancer(""), enhancer("enhancer-threads: 3"));
    assert_eq!(usual.cpu_tasks, 0, "as many as there are cores");
    assert_eq!((three.threads, three.cpu_tasks), (3, 3));
}

#[test]
fn a_room_has_tracks_for_its_participants() {
    let tracks =
        |text: &str| Config::resolve(parse(text).unwrap()).unwrap().sfu.limits.tracks_per_room;
    assert_eq!([tracks(""), tracks("max-participants: 2")], [128, 128]);
    assert_eq!(tracks("max-participants: 200"), 800);
}

#[test]
fn a_short_budget_leaves_time_for_inference() {
    let config = Config::resolve(parse("budget: 50ms").unwrap()).unwrap();
    let enhancer = config.enhancer.unwrap();
    assert!(enhancer.delivery_allowance < enhancer.budget / 2);
}

#[test]
fn rooms_have_policies_of_their_own() {
    let config = |text: &str| Config::resolve(parse(text).unwrap());
    let said = "policy: 'lectures=cost-effective,cost-effective,a=b=quality-sla'";
    let sfu = config(said).unwrap().sfu;
    assert_eq!(sfu.policy, AnchorPolicy::CostEffective);
    assert_eq!(sfu.room_policies["lectures"], AnchorPolicy::CostEffective);
    assert_eq!(sfu.room_policies["a=b"], AnchorPolicy::QualitySla);
    let twice = parse("policy: 'tea=quality-sla,tea=cost-effective'").unwrap_err();
    assert!(twice.to_string().contains("\"tea\" has two policies"), "{twice}");
    for wrong in ["'tea='", "'=quality-sla'", "fair", "'cost-effective,quality-sla'"] {
        assert!(parse(&format!("policy: {wrong}")).is_err(), "{wrong}");
    }
}

#[test]
fn limits_and_keys_are_live_and_addresses_are_not() {
    let live = ["max-enhanced", "max-per-ip", "token-key", "policy", "compute-cap", "log"];
    assert!(live.into_iter().all(is_live));
    assert!(!["http", "budget", "no-such-option"].into_iter().any(is_live));
}

#[test]
fn only_live_options_follow_a_new_file() {
    let (before, after) = (parse("max-enhanced: 1\nbudget: 100ms").unwrap(), parse(ALL).unwrap());
    let now = before.clone().with_live_of(&after);
    assert_eq!(
        (now.max_enhanced, now.budget.map(|time| time.0.0.as_millis()), now.log.as_deref()),
        (Some(8), Some(100), Some("debug"))
    );
    let mut waiting = now.differing(&after);
    waiting.extend(now.differing(&before));
    waiting.sort();
    let mut all: Vec<String> = annotated::options().into_iter().map(|o| o.name).collect();
    all.sort();
    assert_eq!(waiting, all, "each is applied or waits");
}

#[test]
fn no_address_may_have_more_than_a_quarter_of_anything() {
    let resolved = |text: &str| parse(text).and_then(Config::resolve);
    let refused = |text: &str| format!("{:#}", resolved(text).unwrap_err());
    let error = refused("max-per-ip: sockets=501");
    assert!(error.contains("at most 500, a quarter of all"), "{error}");
    assert!(error.contains("sockets=0 where all clients share"), "{error}");
    let small = resolved("max-total-participants: 100").unwrap();
    let admission = small.signaling.admission;
    assert_eq!(
        (admission.sockets, admission.sockets_per_address, admission.participants),
        (200, 50, 100)
    );
    assert_eq!(
        resolved("max-per-ip: sockets=0").unwrap().signaling.admission.sockets_per_address,
        0
    );
    let chosen = resolved("max-per-ip: stun=7,joins=8").unwrap();
    assert_eq!(chosen.sfu.limits.unauthenticated_per_second, 7);
    let admission = chosen.signaling.admission;
    assert_eq!((admission.joins_per_address, admission.sockets_per_address), (8, 500));
    // Two hundred of one office, in a room that is large enough, need nothing else.
    let usual = resolved("").unwrap();
    let admission = usual.signaling.admission;
    assert!(admission.sockets_per_address >= 200 && admission.joins_per_address >= 400);
    assert!(share_of_one(admission.participants) >= 200);
    assert!(usual.sfu.tcp.is_some_and(|tcp| tcp.per_address >= 200));
}

#[test]
fn others_are_served_with_token_keys_or_where_open_rooms_are_asked_for() {
    let closed = |text: &str| Config::resolve(parse(text).unwrap()).unwrap().closed();
    let key = "token-key: [\"k1=0123456789abcdef0123456789abcdef\"]";
    for http in ["0.0.0.0:7880", "\"[::]:7880\"", "192.0.2.1:80", "\"[2001:db8::1]:80\""] {
        let error = closed(&format!("http: {http}")).unwrap_err().to_string();
        assert!(error.contains("windlass key") && error.contains("--open-rooms"), "{error}");
        closed(&format!("http: {http}\nopen-rooms: true")).unwrap();
        closed(&format!("http: {http}\n{key}")).unwrap();
        assert!(closed(&format!("http: {http}\nopen-rooms: false")).is_err());
    }
    for http in ["127.0.0.1:7880", "127.3.2.1:1", "\"[::1]:7880\"", "\"[::ffff:127.0.0.1]:1\""] {
        closed(&format!("http: {http}")).unwrap();
    }
}

#[test]
fn the_page_of_a_node_may_call_it() {
    let nodes = "nats: [\"nats://a:4222\"]\ncluster-token: 0123456789abcdef\n\
                 node-url: wss://sfu-2.example.org:8443/ws";
    let config = |text: &str| Config::resolve(parse(text).unwrap()).unwrap().signaling.origins;
    let named = ["https://calls.example", "https://sfu-2.example.org:8443"];
    let expected = Origins::Only(named.map(|origin| origin.parse().unwrap()).to_vec());
    assert_eq!(config(&format!("{nodes}\norigins: [https://calls.example]")), expected);
    assert_eq!(config(nodes), Origins::Any);
}

#[test]
fn a_value_may_be_a_list_have_spaces_and_be_the_off_of_old_yaml() {
    for (text, same) in [
        ("device: false", "device: 'off'"),
        ("captured: false", "captured: 'off'"),
        ("captured: [layers, stills]", "captured: layers,stills"),
        ("captured: layers, stills", "captured: layers,stills"),
        (
            "policy: [cost-effective, hall=latency-sensitive]",
            "policy: cost-effective,hall=latency-sensitive",
        ),
        ("tls: cert.pem, key.pem", "tls: cert.pem,key.pem"),
        ("device: 0", "device: '0'"),
    ] {
        assert_eq!(parse(text).unwrap(), parse(same).unwrap(), "{text}");
    }
}

#[test]
fn no_error_repeats_a_password() {
    for text in [
        "turn-url: ['turn:anna:secret@turn.example.org:99999']",
        "turn-url: ['turn:anna:secret@']",
        "turn-url: ['turm:anna:secret@turn.example.org']",
        "nats: ['anna:secret@nats:4222']\ncluster-token: 0123456789abcdef",
    ] {
        let error = format!("{:#}", parse(text).and_then(Config::resolve).unwrap_err());
        assert!(!error.contains("secret"), "{error}");
    }
}
