const FIRST_BYTES = 1 << 16;
const FIRST_CELLS = 1 << 12;
const NULL = -1;

/**
 * The cells of one column of a row group, as bytes one after the other. Values of JavaScript take many times the memory, so they are made for one
 * column at a time, when it is written. The memory is used again for the next group.
 */
export class ColumnBytes<Value> {
  readonly #read: (bytes: Buffer) => Value;
  #bytes = Buffer.allocUnsafeSlow(FIRST_BYTES);
  #used = 0;
  #lengths = new Int32Array(FIRST_CELLS);
  #cells = 0;

  constructor(read: (bytes: Buffer) => Value) {
    this.#read = read;
  }

  /** Copies the bytes. */
  append(cell: Buffer | null): void {
    if (this.#cells === this.#lengths.length) {
      const longer = new Int32Array(this.#cells * 2);
      longer.set(this.#lengths);
      this.#lengths = longer;
    }
    this.#lengths[this.#cells++] = cell?.length ?? NULL;
    if (cell === null) return;
    const end = this.#used + cell.length;
    if (end > this.#bytes.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(end, this.#bytes.length * 2));
      this.#bytes.copy(larger, 0, 0, this.#used);
      this.#bytes = larger;
    }
    this.#used += cell.copy(this.#bytes, this.#used);
  }

  values(): (Value | null)[] {
    let at = 0;
    return Array.from(this.#lengths.subarray(0, this.#cells), (length) => {
      if (length === NULL) return null;
      at += length;
      return this.#read(this.#bytes.subarray(at - length, at));
    });
  }

  clear(): void {
    this.#used = 0;
    this.#cells = 0;
  }
}
