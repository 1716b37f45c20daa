import { JsonText, NONE, skipSpace } from './json-text.js';

/** Larger texts are not read a second time: that would hold everything else up. */
const LARGEST = 4 * 1024 * 1024;

/** The byte, from 0, up to which a text that is no JSON reads as some; undefined where it is too large to be looked through. */
export function jsonFault(text: Buffer): number | undefined {
  return text.length > LARGEST ? undefined : new FaultFinder(text).find();
}

/** Notes how far the reading comes: to the beginning of what it cannot read. */
class FaultFinder extends JsonText {
  #reached = 0;

  find(): number {
    this.value(skipSpace(this.text, 0), 0);
    return this.#reached;
  }

  protected override value(at: number, depth: number): number {
    return this.#noted(at, super.value(at, depth));
  }

  protected override key(at: number): number {
    return this.#noted(at, super.key(at));
  }

  #noted(start: number, end: number): number {
    const next = end === NONE ? start : skipSpace(this.text, end);
    this.#reached = Math.min(this.text.length, Math.max(this.#reached, next));
    return end;
  }
}
