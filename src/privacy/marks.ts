import { createHmac, randomBytes, randomUUID } from 'node:crypto';
import { Secret } from '../core/secret.js';
import type { Database } from '../db/connection/database.js';
import type { Transaction } from '../db/connection/transaction.js';
import type { ListKey } from '../db/tables/lists.js';
import { findMarkKey, findMarks, insertMarkKey, type MarkRow } from '../db/tables/marks.js';

const KEY_BYTES = 32;

/** Encrypts the key of the marks. Both throw `mark_key_unreadable` where no encryption key opens it. */
export interface MarkKeyCipher {
  sealMarkKey(key: Secret): string;
  openMarkKey(sealed: string): Secret;
}

/** The members of a record that may be its id, by their names: a string as decoded, a number as written. */
export type IdValues = ReadonlyMap<string, string>;

/** Who was forgotten. */
export class Marks {
  readonly #cipher: MarkKeyCipher;

  constructor(cipher: MarkKeyCipher) {
    this.#cipher = cipher;
  }

  /**
   * The marks of a list; undefined where it has none. The caller holds the list, or does not mind to hear of a mark too late. The key is read anew each
   * time, so that marks are never made with one that a restored database does not have. Throws `mark_key_unreadable`.
   */
  async of({ prisma }: Pick<Database, 'prisma'>, list: ListKey): Promise<ListMarks | undefined> {
    const marks = await findMarks(prisma, list);
    if (marks.length === 0) return undefined;
    const sealed = await findMarkKey(prisma);
    if (sealed === undefined) throw new Error('muster.marks has rows, and muster.mark_key has none: it was emptied by hand');
    return new ListMarks(list, this.#cipher.openMarkKey(sealed), marks);
  }

  /** The same for somebody who may make a mark: the list's marks may be none, and the key is made where there is none. */
  async toAddTo(tx: Transaction, list: ListKey): Promise<ListMarks> {
    const sealed = (await findMarkKey(tx)) ?? (await this.#newKey(tx));
    return new ListMarks(list, this.#cipher.openMarkKey(sealed), await findMarks(tx, list));
  }

  async #newKey(tx: Transaction): Promise<string> {
    await insertMarkKey(tx, this.#cipher.sealMarkKey(new Secret(randomBytes(KEY_BYTES).toString('base64'))));
    // Somebody else may have made one meanwhile.
    return (await findMarkKey(tx))!;
  }
}

/**
 * The marks of one list. A mark is HMAC-SHA-256 of the list, the name of a member and its value: whoever has the key and an id can tell whether it is
 * marked, and nobody can tell an id from a mark.
 */
export class ListMarks {
  readonly #list: ListKey;
  readonly #key: Buffer;
  /** Mark in hex -> person. */
  readonly #persons = new Map<string, string>();
  /** Person -> the members by which it is marked. */
  readonly #members = new Map<string, Set<string>>();

  constructor(list: ListKey, key: Secret, marks: readonly MarkRow[]) {
    this.#list = list;
    this.#key = Buffer.from(key.reveal(), 'base64');
    for (const mark of marks) this.#note(mark);
  }

  /** The members by which anybody is marked. */
  get members(): string[] {
    return [...new Set([...this.#members.values()].flatMap((members) => [...members]))];
  }

  /** Whether anybody is marked. */
  get isEmpty(): boolean {
    return this.#persons.size === 0;
  }

  /**
   * The person that a record is of; undefined where nobody was forgotten. `idMember`: the member that is the list's id now, where it is known. It
   * decides, where the person is marked by it: another member may have the same value in two records. Where the catalogue has come to name the id by
   * a member that the mark does not know, the others decide.
   */
  personOf(values: IdValues, idMember: string | undefined): string | undefined {
    const id = idMember === undefined ? undefined : values.get(idMember);
    const byId = id === undefined ? undefined : this.#personBy(idMember!, id);
    if (byId !== undefined) return byId;
    for (const [member, value] of values) {
      const person = this.#personBy(member, value);
      const isAnother = idMember !== undefined && person !== undefined && this.#members.get(person)!.has(idMember);
      if (person !== undefined && !isAnother) return person;
    }
    return undefined;
  }

  /** The marks that a person lacks for these values, which the list's marks have from now on. Somebody else's are not taken. */
  add(person: string, values: IdValues): MarkRow[] {
    const added: MarkRow[] = [];
    for (const [member, value] of values) {
      const mark = this.#markOf(member, value);
      if (this.#persons.has(mark.toString('hex'))) continue;
      const row = { mark: new Uint8Array(mark), member, person };
      this.#note(row);
      added.push(row);
    }
    return added;
  }

  #note({ mark, member, person }: MarkRow): void {
    this.#persons.set(Buffer.from(mark).toString('hex'), person);
    this.#members.set(person, (this.#members.get(person) ?? new Set()).add(member));
  }

  #personBy(member: string, value: string): string | undefined {
    return this.#persons.get(this.#markOf(member, value).toString('hex'));
  }

  #markOf(member: string, value: string): Buffer {
    const { environment, companyId, resource } = this.#list;
    return createHmac('sha256', this.#key)
      .update(JSON.stringify([environment, companyId, resource, member, value]))
      .digest();
  }
}

/** The values as they are in the ids of a child list, which begin with their parent's. */
export function withPrefix(values: IdValues, prefix: string): IdValues {
  return prefix === '' ? values : new Map([...values].map(([member, value]) => [member, prefix + value]));
}

export function newPerson(): string {
  return randomUUID();
}

/** What stands in the place of a forgotten person's id: random, and nothing that an id looks like (read-page.ts). */
export function placeholder(person: string): string {
  return `#${person.replaceAll('-', '')}`;
}
