use proptest::prelude::*;

use super::*;

fn sample() -> Plan {
    Plan {
        stage: Stage::AloneWithoutNetwork,
        keeps_signals: true,
        status: 7,
        cgroups: vec![8, 9],
        limits: vec![(4, 0), (7, u64::MAX)],
        checks: vec![MountCheck {
            path: b"/w/.git".to_vec(),
            device: 1 << 40,
            inode: 7,
            mount: MountMode::ReadOnly,
        }],
        places: vec![b"/tmp".to_vec()],
        directory: b"/w".to_vec(),
        rules: vec![
            Rule {
                path: b"/usr".to_vec(),
                access: PathAccess::Read,
                object: Some((1 << 40, 3)),
            },
            Rule {
                path: b"/w\xff\n".to_vec(),
                access: PathAccess::Device,
                object: None,
            },
        ],
        files: vec![(11, 3)],
        outlet: Some(Outlet {
            channel: 12,
            environment: vec![(b"P=http://127.0.0.1:".to_vec(), b"/".to_vec())],
        }),
        watch: Some(Watch {
            channel: 13,
            filter: vec![3; 8],
        }),
        made: Some(MadeFile {
            path: b"/tmp/.f".to_vec(),
            bytes: b"{}".to_vec(),
            variable: b"F=/tmp/.f".to_vec(),
        }),
        filter: vec![1; 16],
        program: b"/bin/bash".to_vec(),
        arguments: vec![b"-c".to_vec(), Vec::new()],
        environment: vec![b"A=b\nc".to_vec()],
    }
}

#[test]
fn a_plan_arrives_as_it_was_sent() {
    let plan = sample();
    assert_eq!(Plan::decode(&plan.encode()), Ok(plan));
}

#[test]
fn a_part_of_a_plan_is_no_plan() {
    let bytes = sample().encode();
    for end in 0..bytes.len() {
        assert_eq!(Plan::decode(&bytes[..end]), Err(BadPlan), "cut at {end}");
    }
    let more = [bytes.as_slice(), b"x"].concat();
    assert_eq!(Plan::decode(&more), Err(BadPlan));
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_harm(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        if let Ok(plan) = Plan::decode(&bytes) {
            prop_assert_eq!(plan.encode(), bytes);
        }
    }
}
