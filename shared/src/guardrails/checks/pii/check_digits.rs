//! Numbers that prove themselves.

fn digits(text: &str) -> Vec<u32> {
    text.chars().filter_map(|letter| letter.to_digit(10)).collect()
}

/// Luhn's sum, over as many digits as the network that the first ones name has. Most that look like one are told by their length.
pub fn is_card(text: &str) -> bool {
    let digits = || text.bytes().filter(u8::is_ascii_digit).map(|digit| u32::from(digit - b'0'));
    let mut beginning = digits();
    let (Some(first), Some(second)) = (beginning.next(), beginning.next()) else { return false };
    let is_network = matches!(
        (first * 10 + second, beginning.count() + 2),
        (40..=49, 13 | 16 | 19)
            | (34 | 37, 15)
            | (30 | 36 | 38 | 39, 14)
            | (22..=27 | 35 | 50..=69, 16)
            | (60..=69, 17..=19)
    );
    let luhn = || {
        let doubled = digits().rev().enumerate().map(|(place, digit)| match (place % 2, digit * 2) {
            (0, _) => digit,
            (_, double) if double > 9 => double - 9,
            (_, double) => double,
        });
        doubled.sum::<u32>().is_multiple_of(10)
    };
    is_network && luhn()
}

/// The remainder by 97, letters as numbers, the first four characters last.
pub fn is_iban(text: &str) -> bool {
    let letters: Vec<char> = text.chars().filter(char::is_ascii_alphanumeric).collect();
    if !(15..=34).contains(&letters.len()) {
        return false;
    }
    let turned = letters[4..].iter().chain(&letters[..4]);
    let remainder = turned.filter_map(|letter| letter.to_digit(36)).fold(0, |rest, digit| match digit {
        0..=9 => (rest * 10 + digit) % 97,
        _ => (rest * 100 + digit) % 97,
    });
    remainder == 1
}

/// United States: no area 000, 666 or from 900 on, no group 00, no serial 0000.
pub fn is_ssn(text: &str) -> bool {
    let (area, group, serial) = (&text[..3], &text[4..6], &text[7..]);
    area != "000" && area != "666" && !area.starts_with('9') && group != "00" && serial != "0000"
}

/// Brazil: two check digits.
pub fn is_cpf(text: &str) -> bool {
    let digits = digits(text);
    let check = |count: usize| {
        let sum: u32 =
            digits[..count].iter().enumerate().map(|(place, digit)| digit * (count as u32 + 1 - place as u32)).sum();
        sum * 10 % 11 % 10
    };
    digits.len() == 11
        && digits.iter().any(|digit| *digit != digits[0])
        && check(9) == digits[9]
        && check(10) == digits[10]
}

/// Spain: the letter is the remainder by 23.
pub fn is_dni(text: &str) -> bool {
    let number = digits(text).iter().fold(0u32, |number, digit| number * 10 + digit);
    let letter = b"TRWAGMYFPDXBNJZSQVHLCKE"[(number % 23) as usize];
    text.as_bytes().last() == Some(&letter)
}

/// France: the key is 97 less the remainder.
pub fn is_nir(text: &str) -> bool {
    let digits = digits(text);
    if digits.len() != 15 {
        return false;
    }
    let number = |part: &[u32]| part.iter().fold(0u64, |number, digit| number * 10 + u64::from(*digit));
    97 - number(&digits[..13]) % 97 == number(&digits[13..])
}
