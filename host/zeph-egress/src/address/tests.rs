use std::net::{IpAddr, Ipv4Addr};

use super::{ForbiddenAddress as F, forbidden, is_own};

fn check(text: &str, expect: Option<F>) {
    let address: IpAddr = text.parse().unwrap();
    assert_eq!(forbidden(address), expect, "{text}");
}

#[test]
fn what_is_public() {
    for text in [
        "1.1.1.1",
        "8.8.8.8",
        "93.184.216.34",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.1",
        "168.63.129.15",
        "169.253.255.255",
        "172.15.255.255",
        "172.32.0.0",
        "192.0.1.0",
        "192.167.1.1",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "2606:4700:4700::1111",
        "2001:4860:4860::8888",
        "2a00::1",
        "2001:200::1",
        "64:ff9b::8.8.8.8",
    ] {
        check(text, None);
    }
}

#[test]
fn what_nobody_reaches() {
    for (text, why) in [
        ("0.0.0.0", F::Unspecified),
        ("0.1.2.3", F::Reserved),
        ("10.0.0.1", F::Private),
        ("10.255.255.255", F::Private),
        ("100.64.0.1", F::Shared),
        ("100.127.255.255", F::Shared),
        ("100.100.100.200", F::Metadata),
        ("127.0.0.1", F::Loopback),
        ("127.255.255.254", F::Loopback),
        ("168.63.129.16", F::Metadata),
        ("169.254.169.254", F::Metadata),
        ("169.254.1.1", F::LinkLocal),
        ("172.16.0.1", F::Private),
        ("172.31.255.255", F::Private),
        ("192.0.0.192", F::Reserved),
        ("192.0.2.1", F::Documentation),
        ("192.88.99.1", F::Transition),
        ("192.168.1.1", F::Private),
        ("198.18.0.1", F::Benchmark),
        ("198.19.255.255", F::Benchmark),
        ("198.51.100.7", F::Documentation),
        ("203.0.113.7", F::Documentation),
        ("224.0.0.1", F::Multicast),
        ("239.255.255.255", F::Multicast),
        ("240.0.0.1", F::Reserved),
        ("255.255.255.255", F::Broadcast),
        ("::", F::Unspecified),
        ("::1", F::Loopback),
        ("::127.0.0.1", F::Transition),
        ("::8.8.8.8", F::Transition),
        ("::ffff:127.0.0.1", F::Transition),
        ("::ffff:8.8.8.8", F::Transition),
        ("::ffff:0:10.0.0.1", F::Transition),
        ("64:ff9b::10.0.0.1", F::Private),
        ("64:ff9b::169.254.169.254", F::Metadata),
        ("64:ff9b::127.0.0.1", F::Loopback),
        ("64:ff9b:1::8.8.8.8", F::Transition),
        ("64:ff9b:1:a00:1::", F::Transition),
        ("64:ff9b:2::1", F::Reserved),
        ("100::1", F::Reserved),
        ("2001::1", F::Transition),
        ("2001:0:4136:e378:8000:63bf:3fff:fdd2", F::Transition),
        ("2001:2::1", F::Benchmark),
        ("2001:10::1", F::Reserved),
        ("2001:20::1", F::Reserved),
        ("2001:db8::1", F::Documentation),
        ("2002:7f00:1::", F::Transition),
        ("2002:808:808::1", F::Transition),
        ("3fff::1", F::Documentation),
        ("2606::5efe:10.0.0.1", F::Transition),
        ("2606::200:5efe:8.8.8.8", F::Transition),
        ("4000::1", F::Reserved),
        ("5f00::1", F::Reserved),
        ("fc00::1", F::UniqueLocal),
        ("fd00:ec2::254", F::Metadata),
        ("fdff::1", F::UniqueLocal),
        ("fe80::1", F::LinkLocal),
        ("fec0::1", F::Private),
        ("ff02::1", F::Multicast),
    ] {
        check(text, Some(why));
    }
}

/// The oracle is the standard library, where it has a stable word for it.
#[test]
fn no_address_with_a_special_meaning_is_public() {
    for first in 0..=255_u8 {
        for second in 0..=255_u8 {
            let address = Ipv4Addr::new(first, second, 0, 1);
            let is_special = address.is_private()
                || address.is_loopback()
                || address.is_link_local()
                || address.is_multicast()
                || address.is_broadcast();
            if is_special {
                assert!(forbidden(address.into()).is_some(), "{address}");
            }
            for embedded in [
                address.to_ipv6_mapped(),
                address.to_ipv6_compatible(),
                format!("2002:{first:02x}{second:02x}:0001::1")
                    .parse()
                    .unwrap(),
                format!("2a00::5efe:{address}").parse().unwrap(),
            ] {
                assert!(forbidden(embedded.into()).is_some(), "{embedded}");
            }
            let translated: IpAddr = format!("64:ff9b::{address}").parse().unwrap();
            assert_eq!(forbidden(translated), forbidden(address.into()));
        }
    }
}

#[test]
fn the_machine_knows_its_own_addresses() {
    assert!(is_own(Ipv4Addr::LOCALHOST.into()));
    assert!(!is_own(Ipv4Addr::new(93, 184, 216, 34).into()));
    assert!(!is_own("2606:4700:4700::1111".parse().unwrap()));
}
