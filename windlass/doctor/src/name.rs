//! Checks whether a server's public name leads to it.

use std::net::IpAddr;

use crate::connect::resolve;
use crate::finding::Finding;

/// Name of this check in findings.
const CHECK: &str = "name";

/// Checks whether `name` leads to one of `own`, the addresses at which others see this machine.
pub fn name(name: &str, own: &[IpAddr]) -> Finding {
    led(name, resolve(name, 443).map(|all| all.iter().map(std::net::SocketAddr::ip).collect()), own)
}

fn led(name: &str, leads: Result<Vec<IpAddr>, String>, own: &[IpAddr]) -> Finding {
    let list = |all: &[IpAddr]| all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let record = if own.is_empty() {
        format!("a DNS record for {name}, A or AAAA, with this machine's address")
    } else {
        format!("a DNS record for {name}, A or AAAA, with {}", list(own))
    };
    let mut leads = match leads {
        Ok(leads) => leads,
        Err(error) => return Finding::fault(CHECK, error, record),
    };
    leads.sort();
    leads.dedup();
    let found = format!("{name} leads to {}", list(&leads));
    if leads.iter().all(IpAddr::is_loopback) {
        // Debian writes a machine's own name so.
        let found = format!("{found} by this machine's /etc/hosts: what others get is not seen");
        return Finding::warning(CHECK, found, format!("see that there is {record}"));
    }
    if own.is_empty() {
        return Finding::ok(CHECK, found);
    }
    let strange: Vec<_> = leads.iter().filter(|ip| !own.contains(ip)).copied().collect();
    if strange.is_empty() {
        return Finding::ok(CHECK, found);
    }
    let found = format!("{found}, and others see this machine at {}", list(own));
    if strange.len() == leads.len() {
        return Finding::fault(CHECK, found, record);
    }
    let mend = format!("take {} out of the DNS records for {name}", list(&strange));
    Finding::warning(CHECK, found, mend)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Level;

    fn ips(all: &[&str]) -> Vec<IpAddr> {
        all.iter().map(|ip| ip.parse().unwrap()).collect()
    }

    fn found(leads: &[&str], own: &[&str]) -> Finding {
        led("calls.example", Ok(ips(leads)), &ips(own))
    }

    #[test]
    fn a_name_leads_to_an_address_at_which_others_see_the_machine() {
        assert_eq!(found(&["203.0.113.5"], &["203.0.113.5", "2001:db8::1"]).level, Level::Ok);
        assert_eq!(found(&["203.0.113.5"], &[]).level, Level::Ok);
        let other = found(&["192.0.2.7"], &["203.0.113.5"]);
        assert_eq!(other.level, Level::Fault);
        assert!(other.mend.unwrap().contains("with 203.0.113.5"));
        let half = found(&["203.0.113.5", "2001:db8::9"], &["203.0.113.5"]);
        assert_eq!(half.level, Level::Warning);
        assert!(half.mend.unwrap().contains("take 2001:db8::9 out"));
    }

    #[test]
    fn a_name_that_nobody_knows_wants_a_record() {
        let found = name("no-such-name.invalid", &ips(&["203.0.113.5"]));
        assert_eq!(found.level, Level::Fault);
        assert!(found.found.contains("no-such-name.invalid is not known"), "{found:?}");
        assert!(found.mend.unwrap().contains("203.0.113.5"));
    }

    #[test]
    fn the_machines_own_list_of_names_says_nothing_of_what_others_get() {
        assert_eq!(found(&["127.0.1.1"], &["203.0.113.5"]).level, Level::Warning);
    }
}
