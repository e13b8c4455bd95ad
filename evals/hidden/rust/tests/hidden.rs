use stats::median;

#[test]
fn even() {
    assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
}

#[test]
fn odd_and_none() {
    assert_eq!(median(&[5.0]), Some(5.0));
    assert_eq!(median(&[]), None);
}
