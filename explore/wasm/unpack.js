"use strict";
// Bytes out of the text of a script element in a page of UTF-8. A character of one byte is seven bits of an LZMA stream ("LZMA
// specification", Igor Pavlov, 2015), which says the same as gzip in a quarter less; browsers unpack gzip themselves, but no LZMA. The
// few characters that a page or a terminal would change are left out: one of two bytes says which of them, and the seven bits that follow it
// ("Base-122 encoding", Kevin Albertson, 2016). Seven bytes become eight; digits to the base 85
// make five of four, base64 four of three.
const LEFT_OUT = [0, 8, 12, 13, 26, 27, 38, 60];  // NUL, backspace, form feed, carriage return, end of file, escape, &, <

/// `text`: "LENGTH PACKED CHARACTERS", bytes before and after LZMA.
function unpack(text) {
  const first = text.indexOf(" "), second = text.indexOf(" ", first + 1), bytes = new Uint8Array(Number(text.slice(first + 1, second)));
  let at = 0, held = 0, bits = 0;
  const put = (seven) => { held = (held << 7) | seven; bits += 7; if (bits >= 8) { bits -= 8; bytes[at++] = held >> bits; held &= (1 << bits) - 1; } };
  for (let i = second + 1; i < text.length; ++i) {
    const c = text.charCodeAt(i);
    if (c < 128) put(c); else { put(LEFT_OUT[(c >> 7) - 1]); put(c & 127); }
  }
  return unlzma(bytes, Number(text.slice(0, first)));
}

/// The `length` bytes of an LZMA stream with its header of 13 bytes.
function unlzma(source, length) {
  const lc = source[0] % 9, lp = ((source[0] / 9) | 0) % 5, pb = (source[0] / 45) | 0;
  const out = new Uint8Array(length);
  let from = 13, range = 0xffffffff, code = 0;
  for (let i = 0; i < 5; ++i) code = ((code << 8) | source[from++]) >>> 0;
  // Offsets of the probabilities of each kind of bit, all in one array.
  let many = 0;
  const place = (count) => { const at = many; many += count; return at; };
  const MATCH = place(12 << 4), REP = place(12), REP0 = place(12), REP1 = place(12), REP2 = place(12), REP0_LONG = place(12 << 4), SLOT = place(4 << 6), SPECIAL = place(128), ALIGN = place(16);
  const lengths = () => ({ choice: place(2), low: place(16 << 3), middle: place(16 << 3), high: place(256) });
  const LENGTH = lengths(), REP_LENGTH = lengths(), LITERAL = place(0x300 << (lc + lp));
  const probabilities = new Uint16Array(many).fill(1024);

  function bit(at) {
    const p = probabilities[at], bound = ((range >>> 11) * p) >>> 0;
    let b = 0;
    if (code < bound) { range = bound; probabilities[at] = p + ((2048 - p) >> 5); } else { range = (range - bound) >>> 0; code = (code - bound) >>> 0; probabilities[at] = p - (p >> 5); b = 1; }
    if (range < 0x1000000) { range = (range << 8) >>> 0; code = ((code << 8) | source[from++]) >>> 0; }
    return b;
  }
  function direct(count) {
    let v = 0;
    for (; count > 0; --count) {
      range >>>= 1;
      const b = code >= range ? 1 : 0;
      if (b) code = (code - range) >>> 0;
      v = v * 2 + b;
      if (range < 0x1000000) { range = (range << 8) >>> 0; code = ((code << 8) | source[from++]) >>> 0; }
    }
    return v;
  }
  function tree(at, bits) { let m = 1; for (let i = 0; i < bits; ++i) m = (m << 1) | bit(at + m); return m - (1 << bits); }
  function backwards(at, bits) { let m = 1, v = 0; for (let i = 0; i < bits; ++i) { const b = bit(at + m); m = (m << 1) | b; v |= b << i; } return v; }
  function match_length(of, near) { return !bit(of.choice) ? 2 + tree(of.low + (near << 3), 3) : !bit(of.choice + 1) ? 10 + tree(of.middle + (near << 3), 3) : 18 + tree(of.high, 8); }

  let state = 0, reps = [0, 0, 0, 0], at = 0;
  while (at < length) {
    const near = at & ((1 << pb) - 1);
    if (!bit(MATCH + (state << 4) + near)) {
      const before = at ? out[at - 1] : 0, base = LITERAL + 0x300 * (((at & ((1 << lp) - 1)) << lc) + (before >> (8 - lc)));
      let symbol = 1;
      if (state >= 7) {
        let old = out[at - reps[0] - 1];
        do { const b = (old >> 7) & 1; old <<= 1; const got = bit(base + ((1 + b) << 8) + symbol); symbol = (symbol << 1) | got; if (b !== got) break; } while (symbol < 0x100);
      }
      while (symbol < 0x100) symbol = (symbol << 1) | bit(base + symbol);
      out[at++] = symbol & 0xff;
      state = state < 4 ? 0 : state < 10 ? state - 3 : state - 6;
      continue;
    }
    let count;
    if (bit(REP + state)) {
      if (!bit(REP0 + state)) {
        if (!bit(REP0_LONG + (state << 4) + near)) { state = state < 7 ? 9 : 11; out[at] = out[at - reps[0] - 1]; ++at; continue; }
      } else {
        const which = !bit(REP1 + state) ? 1 : !bit(REP2 + state) ? 2 : 3;
        reps.unshift(...reps.splice(which, 1));
      }
      count = match_length(REP_LENGTH, near);
      state = state < 7 ? 8 : 11;
    } else {
      count = match_length(LENGTH, near);
      state = state < 7 ? 7 : 10;
      const slot = tree(SLOT + (Math.min(count - 2, 3) << 6), 6), extra = (slot >> 1) - 1;
      let distance = slot;
      if (slot >= 4) {
        distance = ((2 | (slot & 1)) << extra) >>> 0;
        distance += slot < 14 ? backwards(SPECIAL + distance - slot, extra) : direct(extra - 4) * 16 + backwards(ALIGN, 4);
      }
      if (distance === 0xffffffff) break;  // the end of the stream
      reps = [distance, reps[0], reps[1], reps[2]];
    }
    for (const back = reps[0] + 1; count > 0 && at < length; --count, ++at) out[at] = out[at - back];
  }
  return out;
}
if (typeof module !== "undefined" && module.exports) module.exports = { unpack, LEFT_OUT };
