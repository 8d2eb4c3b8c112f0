use super::*;

/// What a file says, checked.
fn parse(text: &str) -> Result<Settings> {
    Ok(File::parse(text)?.settings)
}

const ALL: &str = r#"
    http: "0.0.0.0:80"
    udp: "[::]:7881"
    metrics: 127.0.0.1:7882
    open-rooms: false
    admin-local: true
    advertise: ["192.0.2.1:7881", "2001:db8::1"]
    tcp: "[::]:443"
    no-tcp: false
    advertise-tcp: ["192.0.2.1:443"]
    forwarding-threads: 3
    turn-url: ["turn:turn.example.org:3478"]
    turn-secret: "north"
    turn-ttl-s: 600
    turn-username: "anna"
    turn-password: "south"
    tls-cert: /etc/windlass/cert.pem
    tls-key: /etc/windlass/key.pem
    tls-self-signed: false
    trusted-proxies: [10.0.0.0/8, "::1"]
    origins: ["https://calls.example", "http://localhost:5173"]
    budget-ms: 150
    no-enhancer: true
    workers: ["https://10.0.0.7:7890"]
    nats: ["tls://10.0.0.9:4222"]
    node-url: wss://sfu-2.example.org/ws
    node-listen: 10.0.0.2:7883
    node-address: https://10.0.0.2:7883
    node-room-most: 50
    nats-credentials: /etc/windlass/nats.creds
    nats-ca: /etc/windlass/nats-ca.pem
    cluster-token: "0123456789abcdef"
    cluster-ca: /etc/windlass/ca.pem
    cluster-cert: /etc/windlass/cluster.pem
    cluster-key: /etc/windlass/cluster-key.pem
    engine: "cuda"
    device: ["0:1", "GPU-8932f937"]
    network: "auto"
    enhancer-threads: 4
    compute-cap: 0.5
    cpu-tasks: 3
    policy: "latency-sensitive"
    quality-sla-db: 1.5
    room-policy: ["lectures=cost-effective", "a=b=quality-sla"]
    anchor-fraction: 0.1
    anchor-quality: 70
    no-captured: false
    no-learn: true
    adapt: true
    stills-kbps: 40
    max-enhanced: 8
    enhancer-memory-mb: 512
    max-layer: 640x360
    max-participants: 10
    max-total-participants: 100
    max-rooms: 20
    token-key: ["k1=0123456789abcdef0123456789abcdef"]
    webhook: ["https://example.org/windlass"]
    webhook-secret: ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]
    no-congestion-control: true
    max-tracks: 100
    max-sockets-per-ip: 50
    max-joins-per-ip: 60
    max-stun-per-ip: 70
    max-tcp-connections: 300
    max-tcp-per-ip: 30
    drain-timeout-s: 60
    log: "debug"
    log-json: true
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
    for option in annotated::options() {
        assert!(ALL.contains(&format!("\n    {}: ", option.name)), "{}", option.name);
    }
}

#[test]
fn an_error_in_a_file_says_where_what_and_what_is_allowed() {
    for (text, expected) in [
        ("budget: 150", "line 1, column 9: `budget` is no option; did you mean `budget-ms`?"),
        (
            "# a\nmax_rooms: 1",
            "line 2, column 12: `max_rooms` is no option; did you mean `max-rooms`?",
        ),
        ("maxrooms: 1", "line 1, column 11: `maxrooms` is no option; did you mean `max-rooms`?"),
        ("colour: 1", "`windlass config --annotated` lists them all"),
        (
            "adapt: true\nbudget-ms: 10",
            "line 2, column 12: budget-ms must be from 50 to 2000, not 10",
        ),
        ("log: info\nhttp: 80", "line 2, column 7: http: "),
        ("budget-ms: soon", "line 1, column 12: budget-ms: "),
        ("budget-ms: soon", "(milliseconds: Latency budget"),
        ("max-rooms: 1\nengine: gpu", "line 2, column 9: engine: "),
        ("advertise:\n  - 192.0.2.1\n  - example", "line 3, column 5: advertise: "),
        ("max-rooms: 1\nmax-rooms: 2", "line 2, column 1"),
        ("budget-ms = 150", "line 1, column 1"),
        ("log: 'a=b=c'", "line 1, column 6: log "),
    ] {
        let error = format!("{:#}", parse(text).unwrap_err());
        assert!(error.contains(expected), "{text}: {error}");
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
        ("budget-ms: 10", "budget-ms"),
        ("max-participants: 0", "max-participants"),
        ("max-rooms: 0", "max-rooms"),
        ("forwarding-threads: 0", "must be from 1 to 64, not 0"),
        ("compute-cap: 1.5", "compute-cap"),
        ("anchor-fraction: -0.1", "anchor-fraction"),
        ("anchor-fraction: .nan", "anchor-fraction"),
        ("anchor-quality: 0", "anchor-quality"),
        ("engine: \"gpu\"", "auto, cpu, cuda"),
        ("device: [\"0\"]", "device needs an engine"),
        ("engine: \"auto\"\ndevice: [\"nvidia0\"]", "windlass devices"),
        ("network: \"l\"", "auto, xs, m"),
        ("enhancer-threads: 0", "enhancer-threads"),
        ("token-key: [\"k1=short\"]", "32 bytes"),
        ("webhook: [\"https://example.org\"]", "webhook-secret"),
        ("webhook: [\"example.org\"]", "http:// or https://"),
        ("webhook-secret: [\"hunter2\"]", "whsec_"),
        ("token-key: [\"k1=@/no/such/file\"]", "cannot read"),
        ("tls-cert: a.pem", "tls-cert needs tls-key"),
        ("tls-key: a.pem", "tls-key needs tls-cert"),
        ("trusted-proxies: [10.0.0.0/40]", "neither IP nor IP/PREFIX"),
        (
            "open-rooms: true\ntoken-key: [\"k1=0123456789abcdef0123456789abcdef\"]",
            "beside token-key",
        ),
        ("origins: [\"calls.example\"]", "no origin"),
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
fn networks_learn_unless_they_are_told_not_to() {
    let learn = |text: &str| {
        let config = Config::resolve(parse(text).unwrap()).unwrap();
        config.enhancer.unwrap().learn
    };
    assert!(learn("") && learn("no-learn: false") && !learn("no-learn: true"));
}

#[test]
fn a_short_budget_leaves_time_for_inference() {
    let config = Config::resolve(parse("budget-ms: 50").unwrap()).unwrap();
    let enhancer = config.enhancer.unwrap();
    assert!(enhancer.delivery_allowance < enhancer.budget / 2);
}

#[test]
fn rooms_have_policies_of_their_own() {
    let config = |text: &str| Config::resolve(parse(text).unwrap());
    let said =
        "policy: cost-effective\nroom-policy: ['lectures=cost-effective', 'a=b=quality-sla']";
    let sfu = config(said).unwrap().sfu;
    assert_eq!(sfu.policy, AnchorPolicy::CostEffective);
    assert_eq!(sfu.room_policies["lectures"], AnchorPolicy::CostEffective);
    assert_eq!(sfu.room_policies["a=b"], AnchorPolicy::QualitySla);
    let twice = parse("room-policy: ['tea=quality-sla', 'tea=cost-effective']").unwrap_err();
    assert!(twice.to_string().contains("\"tea\" twice"), "{twice}");
    for wrong in ["room-policy: ['tea']", "room-policy: ['=quality-sla']", "policy: 'fair'"] {
        assert!(parse(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn every_live_option_is_an_option() {
    let options = annotated::options();
    for live in LIVE {
        assert!(options.iter().any(|o| o.name == live), "{live}");
    }
    assert!(is_live("max-rooms") && !is_live("http"));
}

#[test]
fn only_live_options_follow_a_new_file() {
    let (before, after) = (parse("max-rooms: 1\nbudget-ms: 100").unwrap(), parse(ALL).unwrap());
    let now = before.clone().with_live_of(&after);
    assert_eq!(
        (now.max_rooms, now.budget_ms, now.log.as_deref()),
        (Some(20), Some(100), Some("debug"))
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
    let error = refused("max-sockets-per-ip: 501");
    assert!(error.contains("max-sockets-per-ip must be at most 500, a quarter of all"), "{error}");
    assert!(error.contains("0 for no bound"), "{error}");
    let error = refused("max-tcp-connections: 100\nmax-tcp-per-ip: 26");
    assert!(error.contains("max-tcp-per-ip must be at most 25, a quarter of"), "{error}");
    let small = resolved("max-total-participants: 100\nmax-tcp-connections: 100").unwrap();
    let door = small.signaling.door;
    assert_eq!((door.sockets, door.sockets_per_address, door.participants), (200, 50, 100));
    assert_eq!(small.sfu.tcp.map(|tcp| tcp.per_address), Some(25));
    assert_eq!(resolved("max-sockets-per-ip: 0").unwrap().signaling.door.sockets_per_address, 0);
    // Two hundred of one office, in a room that is large enough, need nothing else.
    let usual = resolved("").unwrap();
    let door = usual.signaling.door;
    assert!(door.sockets_per_address >= 200 && door.joins_per_address >= 400);
    assert!(share_of_one(door.participants) >= 200);
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
