//! The English words that the guard knows: which carry no question of their own, deny, count, measure, begin a request, mean
//! the same, or exclude each other. Lists, and nothing else.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

/// Words that only hold a sentence together or make a question of it.
const FRAME: &str = "a an the of to in on at for by via with as is are was were be been being am do does did done doing \
have has had having will would shall should can could may might must i me my mine we us our ours you your yours he him his \
she her hers it its they them their theirs this that these those there here and or but if then so than too very just also \
about into onto out up down over how what which whose whom who when where why whats hows wheres whos please kindly could \
tell explain describe give show let know need needs want wants like help hello hi hey dear thanks thank much many some any \
each both such steps step way ways possible get got gets getting go goes going use used make makes made some something \
anything someone somebody me good simple simply words okay ok well really actually exactly per take takes one";

const NEGATIONS: &str = "not no never none nobody nothing nowhere neither nor without cannot cant dont doesnt didnt isnt \
arent wasnt werent wont wouldnt shouldnt couldnt hasnt havent hadnt mustnt non except excluding unless hardly barely lacking \
nicht kein keine keinen nie ohne pas jamais sans sin nunca";

/// First words of requests, which have a capital because they come first.
const BEGINNINGS: &str = "write create make list name translate summarize summarise compare recommend suggest plan find fix \
sort generate draft convert calculate compute solve define discuss outline rewrite rephrase improve correct check review \
analyze analyse classify extract identify choose pick rank rate order add remove delete update change set turn open close \
start stop begin end run build design implement code debug test refactor optimize optimise install configure deploy send \
reply answer respond continue imagine pretend act say read look see search provide prepare propose produce count estimate \
evaluate assume consider after before during while since because although though between among from under without within \
once every all most more less few several another other one two three today tomorrow yesterday now never always sometimes \
often usually maybe perhaps yes no not only even still already yet again first second third next last finally however \
therefore our your his their both either neither according based given using as at by for in of on to with \
are am is was were do does did has have had can could will would should may might must shall cats dogs people";

const DAYS_AND_MONTHS: &str = "monday tuesday wednesday thursday friday saturday sunday january february april june july \
august september october november december christmas easter";

/// Words that mean the same, or are forms of one: the first stands for the others.
const SAME: &[&str] = &[
    "buy purchase bought",
    "begin start began begun starting",
    "delete remove erase removed",
    "repair fix mend",
    "big large huge",
    "biggest largest",
    "fast quick quickly rapidly rapid",
    "benefit advantage",
    "cheap inexpensive affordable",
    "make made",
    "write wrote written author",
    "win won winner",
    "lose lost",
    "invent inventor",
    "paint painted painter",
    "mean meaning definition",
    "summary summarize summarise summarise",
    "picture photo photograph image",
    "movie film",
    "job occupation profession",
    "doctor physician",
    "holiday vacation trip",
    "error bug fault",
    "enable activate",
    "disable deactivate",
    "center centre",
    "liter litre",
    "program programme",
    "gray grey",
    "percent percentage",
    "contact reach",
];

/// Each group's classes exclude each other.
pub static ALTERNATIVES: &[&[&str]] = &[
    &["who, whom", "when", "where", "why"],
    &["before, prior to, earlier", "after, later, following"],
    &["increase, raise, grow, boost, gain", "decrease, lower, reduce, shrink, lose, cut"],
    &["buy, purchase", "sell"],
    &["borrow", "lend, lent"],
    &["enable, activate, turn on, switch on", "disable, deactivate, turn off, switch off"],
    &["upload", "download"],
    &["encrypt, encode", "decrypt, decode"],
    &["compress, zip", "decompress, unzip, extract"],
    &["advantage, benefit, pro, strength", "disadvantage, drawback, con, weakness"],
    &["best, better", "worst, worse"],
    &["largest, biggest, larger, bigger, greatest", "smallest, smaller, tiniest, least"],
    &["maximum, max, most", "minimum, min, fewest"],
    &["tallest, highest, taller, higher", "shortest, lowest, shorter, lower"],
    &["longest, longer", "shortest, shorter"],
    &["fastest, faster", "slowest, slower"],
    &["cheap, cheaper, cheapest, less expensive, inexpensive", "expensive, more expensive, dear, costly"],
    &["start, begin, launch", "stop, end, finish, quit"],
    &["open", "close, shut"],
    &["add, insert, append, attach, join", "remove, delete, subtract, detach, leave"],
    &["multiply", "divide"],
    &["import", "export"],
    &["push", "pull"],
    &["lock", "unlock"],
    &["subscribe", "unsubscribe", "cancel"],
    &["win, won", "lose, lost"],
    &["pass", "fail"],
    &["accept, approve, allow", "reject, deny, refuse, forbid, decline"],
    &["north", "south", "east", "west"],
    &["northern", "southern", "eastern", "western"],
    &["left", "right"],
    &["inside, indoors", "outside, outdoors"],
    &["above, over", "below, under, beneath"],
    &["up", "down"],
    &["on", "off"],
    &["front", "back"],
    &["top", "bottom"],
    &["ascending", "descending"],
    &["first", "last"],
    &["older, oldest", "newer, newest, younger, youngest"],
    &["old", "new, young"],
    &["hot, hotter, hottest", "cold, colder, coldest"],
    &["warm", "cool"],
    &["safe", "dangerous"],
    &["legal", "illegal"],
    &["male, men, man, boy, husband, father", "female, women, woman, girl, wife, mother"],
    &["son, brother, uncle", "daughter, sister, aunt"],
    &["today", "tomorrow", "yesterday", "tonight"],
    &["morning", "noon", "afternoon", "evening", "night"],
    &["breakfast", "lunch", "dinner, supper"],
    &["spring", "summer", "autumn, fall", "winter"],
    &["past, previous", "future, next, upcoming"],
    &["always", "never", "sometimes"],
    &["all, every", "none", "some"],
    &["more", "less, fewer"],
    &["public", "private"],
    &["input", "output"],
    &["send, sent", "receive"],
    &["ask", "answer"],
    &["question", "answer"],
    &["arrival, arrive", "departure, depart"],
    &["enter, entry", "exit"],
    &["employer", "employee"],
    &["interviewer", "interviewee"],
    &["teacher", "student"],
    &["seller, vendor", "buyer, customer"],
    &["landlord", "tenant"],
    &["cause", "effect, symptom", "treatment, cure"],
    &["true", "false"],
    &["positive", "negative"],
    &["even", "odd"],
    &["gross", "net"],
    &["credit", "debit"],
    &["income, revenue", "expense, cost"],
    &["formal", "informal, casual"],
    &["beginner", "advanced, expert"],
    &["short, brief", "long, detailed"],
    &["sync, synchronous", "async, asynchronous"],
    &["client", "server"],
    &["encourage", "discourage"],
    &["love", "hate"],
    &["red", "green", "blue", "yellow", "black", "white", "orange", "purple", "pink", "brown"],
];

/// Each measure by all its names; the first stands for the others.
const UNITS: &[&str] = &[
    "kilometre kilometres kilometer kilometers km",
    "metre metres meter meters m",
    "centimetre centimetres centimeter centimeters cm",
    "millimetre millimetres millimeter millimeters mm",
    "mile miles mi",
    "yard yards yd",
    "foot feet ft",
    "inch inches",
    "kilogram kilograms kilo kilos kg",
    "gram grams g",
    "milligram milligrams mg",
    "microgram micrograms mcg µg",
    "pound pounds lb lbs",
    "ounce ounces oz",
    "tonne tonnes ton tons",
    "litre litres liter liters l",
    "millilitre millilitres milliliter milliliters ml",
    "gallon gallons",
    "cup cups",
    "tablespoon tablespoons tbsp",
    "teaspoon teaspoons tsp",
    "celsius °c",
    "fahrenheit °f",
    "kelvin",
    "degree degrees °",
    "percent percentage % pct",
    "dollar dollars $ usd",
    "euro euros € eur",
    "sterling £ gbp",
    "yen ¥ jpy",
    "cent cents",
    "millisecond milliseconds ms",
    "second seconds sec secs",
    "minute minutes mins",
    "hour hours hr hrs h",
    "day days",
    "week weeks",
    "month months",
    "year years yr yrs",
    "decade decades",
    "century centuries",
    "mph",
    "km/h kph kmh",
    "m/s",
    "byte bytes",
    "kilobyte kilobytes kb",
    "megabyte megabytes mb",
    "gigabyte gigabytes gb",
    "terabyte terabytes tb",
    "watt watts w",
    "kilowatt kilowatts kw",
    "kwh",
    "volt volts v",
    "hertz hz",
    "ghz",
    "mhz",
    "calorie calories kcal",
    "joule joules",
    "acre acres",
    "hectare hectares",
    "pixel pixels px",
];

const NUMBER_WORDS: &[(&str, u64)] = &[
    ("one", 1),
    ("two second twice double", 2),
    ("three third triple", 3),
    ("four fourth", 4),
    ("five fifth", 5),
    ("six sixth", 6),
    ("seven seventh", 7),
    ("eight eighth", 8),
    ("nine ninth", 9),
    ("ten tenth", 10),
    ("eleven eleventh", 11),
    ("twelve twelfth dozen", 12),
    ("thirteen thirteenth", 13),
    ("fourteen fourteenth", 14),
    ("fifteen fifteenth", 15),
    ("sixteen sixteenth", 16),
    ("seventeen seventeenth", 17),
    ("eighteen eighteenth", 18),
    ("nineteen nineteenth", 19),
    ("twenty twentieth", 20),
    ("thirty thirtieth", 30),
    ("forty fortieth", 40),
    ("fifty fiftieth", 50),
    ("sixty", 60),
    ("seventy", 70),
    ("eighty", 80),
    ("ninety", 90),
    ("hundred", 100),
    ("thousand", 1000),
    ("million", 1_000_000),
    ("billion", 1_000_000_000),
];

type Words = LazyLock<HashSet<&'static str>>;
type WordMap<V> = LazyLock<HashMap<&'static str, V>>;

static FRAME_WORDS: Words = LazyLock::new(|| FRAME.split(' ').collect());
static NEGATION_WORDS: Words = LazyLock::new(|| NEGATIONS.split(' ').collect());
static BEGINNING_WORDS: Words = LazyLock::new(|| BEGINNINGS.split(' ').collect());
static CALENDAR_WORDS: Words = LazyLock::new(|| DAYS_AND_MONTHS.split(' ').collect());
static SAME_WORDS: WordMap<&'static str> = LazyLock::new(|| by_first(SAME));
static UNIT_WORDS: WordMap<&'static str> = LazyLock::new(|| by_first(UNITS));
static NUMBERS: WordMap<u64> = LazyLock::new(|| {
    NUMBER_WORDS.iter().flat_map(|(words, value)| words.split(' ').map(|word| (word, *value))).collect()
});

fn by_first(lists: &[&'static str]) -> HashMap<&'static str, &'static str> {
    let pairs = |list: &'static str| {
        let first = list.split(' ').next().unwrap_or_default();
        list.split(' ').map(move |word| (word, first))
    };
    lists.iter().flat_map(|list| pairs(list)).collect()
}

pub fn is_frame(word: &str) -> bool {
    FRAME_WORDS.contains(word)
}

pub fn is_negation(word: &str) -> bool {
    NEGATION_WORDS.contains(word)
}

pub fn begins_requests(word: &str) -> bool {
    BEGINNING_WORDS.contains(word)
}

pub fn is_day_or_month(word: &str) -> bool {
    CALENDAR_WORDS.contains(word)
}

/// The word that stands for all that mean the same.
pub fn same_word(word: &str) -> Option<&'static str> {
    SAME_WORDS.get(word).copied()
}

pub fn unit(word: &str) -> Option<&'static str> {
    UNIT_WORDS.get(word).copied()
}

pub fn number_word(word: &str) -> Option<u64> {
    NUMBERS.get(word).copied()
}
