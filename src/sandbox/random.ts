/** FNV-1a, which makes a seed of a text. */
function hashText(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}

/**
 * A stream of random numbers (sfc32) named by a text and two numbers. The same name always gives the same stream, so any record can be made
 * again without the records before it. It must not be used for secrets.
 */
export class Random {
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  constructor(stream: string, serial = 0, edition = 0) {
    this.#a = hashText(stream);
    this.#b = serial;
    this.#c = edition;
    for (let i = 0; i < 12; i++) this.next();
  }

  /** An integer of 32 bits. */
  next(): number {
    const sum = (this.#a + this.#b + this.#counter++) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + sum) | 0;
    return sum >>> 0;
  }

  /** An integer from 0 to `limit` - 1. */
  below(limit: number): number {
    return Math.floor((this.next() / 0x1_0000_0000) * limit);
  }

  pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)] as T;
  }

  /** `count` decimal digits; may begin with zeros. */
  digits(count: number): string {
    let text = '';
    while (text.length < count) text += String(this.below(1_000_000)).padStart(6, '0');
    return text.slice(0, count);
  }

  guid(): string {
    let hex = '';
    for (let i = 0; i < 4; i++) hex += this.next().toString(16).padStart(8, '0');
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20)}`;
  }
}
