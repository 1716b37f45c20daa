import { createHmac, randomBytes, randomUUID } from 'node:crypto';
import { Secret } from '../core/secret.js';
import type { Database } from '../db/connection/database.js';
import type { Transaction } from '../db/connection/transaction.js';
import type { ListKey } from '../db/tables/lists.js';
import { findMarkKey, findSuppressions, insertMarkKey, type SuppressionRow } from '../db/tables/marks.js';

const KEY_BYTES = 32;

/** Encrypts and decrypts the key of the suppressions. Both throw `mark_key_unreadable` where no encryption key opens it. */
export interface MarkKeyCipher {
  sealMarkKey(key: Secret): string;
  openMarkKey(sealed: string): Secret;
}

/** The members of a record that may be its id, by their names: a string as decoded, a number as written. */
export type IdValues = ReadonlyMap<string, string>;

/** Reads the suppressions of lists, with their key. */
export class Suppressions {
  readonly #cipher: MarkKeyCipher;

  constructor(cipher: MarkKeyCipher) {
    this.#cipher = cipher;
  }

  /**
   * The suppressions of a list; undefined where it has none. The caller holds the list, or may learn of a suppression late. The key is read each time, so
   * that no suppression is made with a key that a restored database does not have. Throws `mark_key_unreadable`.
   */
  async of({ prisma }: Pick<Database, 'prisma'>, list: ListKey): Promise<ListSuppressions | undefined> {
    const rows = await findSuppressions(prisma, list);
    if (rows.length === 0) return undefined;
    const sealed = await findMarkKey(prisma);
    if (sealed === undefined) throw new Error('muster.marks has rows, and muster.mark_key has none: it was emptied by hand');
    return new ListSuppressions(list, this.#cipher.openMarkKey(sealed), rows);
  }

  /** The suppressions of a list, which may be none, to add to them. Makes the key where there is none. */
  async toAddTo(tx: Transaction, list: ListKey): Promise<ListSuppressions> {
    const sealed = (await findMarkKey(tx)) ?? (await this.#newKey(tx));
    return new ListSuppressions(list, this.#cipher.openMarkKey(sealed), await findSuppressions(tx, list));
  }

  async #newKey(tx: Transaction): Promise<string> {
    await insertMarkKey(tx, this.#cipher.sealMarkKey(new Secret(randomBytes(KEY_BYTES).toString('base64'))));
    // Another process may have made one first.
    return (await findMarkKey(tx))!;
  }
}

/**
 * The suppressions of one list. Each is an HMAC-SHA-256 of the list, the name of a member and its value: the key and an id tell whether the id is
 * suppressed, and no id can be told from the hash.
 */
export class ListSuppressions {
  readonly #list: ListKey;
  readonly #key: Buffer;
  /** Hash in hex -> person. */
  readonly #persons = new Map<string, string>();
  /** Person -> the members that suppress it. */
  readonly #members = new Map<string, Set<string>>();

  constructor(list: ListKey, key: Secret, rows: readonly SuppressionRow[]) {
    this.#list = list;
    this.#key = Buffer.from(key.reveal(), 'base64');
    for (const row of rows) this.#note(row);
  }

  /** The members that suppress any record. */
  get members(): string[] {
    return [...new Set([...this.#members.values()].flatMap((members) => [...members]))];
  }

  /**
   * The forgotten person that a record is of; undefined where it is of none. `idMember`: the list's id member, where it is known. It decides for a person
   * that is suppressed by it, since another member may have the same value in two records. Where the catalogue names another id member than before, the
   * other members decide.
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

  /** Adds the suppressions that a person lacks for these values, and returns them. A value that another person has is left out. */
  add(person: string, values: IdValues): SuppressionRow[] {
    const added: SuppressionRow[] = [];
    for (const [member, value] of values) {
      const hash = this.#hashOf(member, value);
      if (this.#persons.has(hash.toString('hex'))) continue;
      const row = { mark: new Uint8Array(hash), member, person };
      this.#note(row);
      added.push(row);
    }
    return added;
  }

  #note({ mark, member, person }: SuppressionRow): void {
    this.#persons.set(Buffer.from(mark).toString('hex'), person);
    this.#members.set(person, (this.#members.get(person) ?? new Set()).add(member));
  }

  #personBy(member: string, value: string): string | undefined {
    return this.#persons.get(this.#hashOf(member, value).toString('hex'));
  }

  #hashOf(member: string, value: string): Buffer {
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

/** Replaces a forgotten person's id: random, and unlike any id (read-page.ts). */
export function placeholder(person: string): string {
  return `#${person.replaceAll('-', '')}`;
}
