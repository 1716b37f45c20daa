import { constants } from 'node:fs';
import { access, type FileHandle, link, open, readFile, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { z } from 'zod';
import { type CompanyKey, ENVIRONMENTS, keyText, logFieldsOf, parseCompanyId } from '../core/company.js';
import { MusterError } from '../core/errors.js';
import { Repetition } from '../core/repetition.js';
import type { Secret } from '../core/secret.js';
import type { Service } from '../core/service.js';
import type { Database } from '../db/database.js';
import { removedSince } from '../db/tables/audit.js';
import type { Logger } from '../observability/logger.js';
import type { Vault } from './vault.js';

/** Of a company, a refresh token that was received for it, or that it was removed. */
export interface JournalEntry extends CompanyKey {
  /** `databaseTime` before the service was asked: an entry is newer than a stored pair if this is later than when that pair was stored. */
  readonly at: string;
  /** Encrypted; null: the company was removed. */
  readonly refreshToken: string | null;
}

const LINE = z
  .object({
    environment: z.enum(ENVIRONMENTS),
    company_id: z.string().transform((text, context) => parseCompanyId(text) ?? (context.addIssue('no GUID'), z.NEVER)),
    at: z.string().refine((text) => Number.isFinite(Date.parse(text))),
    refresh_token: z.string().nullable(),
  })
  .transform(({ environment, company_id: companyId, at, refresh_token: refreshToken }): JournalEntry => {
    return { environment, companyId, at, refreshToken };
  });

const COMPACTION_MS = 3_600_000;
/** A compaction takes moments: after so long, its process has died. */
const ABANDONED_MS = 60_000;

/**
 * The file of TOKEN_JOURNAL: every refresh token that any process of this host received, so that a restored backup can be brought up to date. A line is on the disk before its
 * token is used, and begins with a line feed: one that was cut off by a crash or a full disk spoils no other.
 *
 * Compaction leaves the newest entry of each company. It takes the file's second name, `<file>.old`, before it puts another file in its place, and then reads again what was
 * appended to the old one until then. Whoever appends looks afterwards whether the file is still the one of that name, and appends once more if not.
 */
export class TokenJournal implements Service {
  readonly name = 'token journal';
  readonly #path: string;
  readonly #deps: { readonly db: Database; readonly vault: Vault; readonly logger: Logger };
  readonly #compaction = new Repetition(COMPACTION_MS, () => this.#compactOrWarn());

  constructor(path: string, deps: { readonly db: Database; readonly vault: Vault; readonly logger: Logger }) {
    this.#path = path;
    this.#deps = deps;
  }

  /** Throws `invalid_configuration` where the file cannot be written. */
  async start(): Promise<void> {
    try {
      await (await open(this.#path, 'a', 0o600)).close();
      await access(dirname(this.#path), constants.W_OK);
      await flushFolder(this.#path);
    } catch (cause) {
      const { code } = cause as NodeJS.ErrnoException;
      throw new MusterError(
        'invalid_configuration',
        `TOKEN_JOURNAL: the file cannot be written (${code}). Make its folder, and let this user write there.`,
        { cause },
      );
    }
    await this.#compactOrWarn();
    this.#compaction.start();
  }

  async stop(): Promise<void> {
    await this.#compaction.stop();
  }

  /** Resolves when the entry is on the disk. Never throws: the database has the token, too, and a refusal would lose it. */
  async append(company: CompanyKey, at: string, refreshToken: Secret | null): Promise<void> {
    const sealed = refreshToken && this.#deps.vault.sealRefresh(company, refreshToken);
    try {
      await this.#write(lineOf({ ...company, at, refreshToken: sealed }));
    } catch (error) {
      this.#deps.logger.error({ err: error, ...logFieldsOf(company) }, 'a refresh token could not be written to TOKEN_JOURNAL');
    }
  }

  /** Leaves the newest entry of each company, made with the first key, and nothing of companies that were removed but that they were. */
  async compact(): Promise<void> {
    const old = `${this.#path}.old`;
    if (!(await this.#takeOldName(old))) return;
    const begun = await readFile(old);
    const next = await open(`${this.#path}.new`, 'w', 0o600);
    try {
      await next.writeFile((await this.#newestOf(begun.toString('utf8'))).map(lineOf).join(''));
      await next.datasync();
      await rename(`${this.#path}.new`, this.#path);
      await flushFolder(this.#path);
      const rest = (await readFile(old)).subarray(begun.length).toString('utf8');
      if (rest !== '') await this.#write(rest);
      await rm(old);
    } finally {
      await next.close();
    }
  }

  async #compactOrWarn(): Promise<void> {
    await this.compact().catch((error: unknown) =>
      this.#deps.logger.warn({ err: error }, 'TOKEN_JOURNAL could not be compacted'),
    );
  }

  /** False while another process compacts. What one has left that died is taken over first. */
  async #takeOldName(old: string): Promise<boolean> {
    const left = await stat(old).catch(() => undefined);
    if (left) {
      if (Date.now() - left.ctimeMs < ABANDONED_MS) return false;
      await this.#write(await readFile(old, 'utf8'));
      await rm(old, { force: true });
    }
    return link(this.#path, old).then(
      () => true,
      (error: NodeJS.ErrnoException) => {
        if (error.code === 'EEXIST') return false;
        throw error;
      },
    );
  }

  async #newestOf(text: string): Promise<JournalEntry[]> {
    const { db, vault } = this.#deps;
    const newest = newestOfEach(readJournal(text).entries);
    const removed = await removedSince(db, newest);
    return newest.map((entry) => {
      if (entry.refreshToken === null || removed.has(keyText(entry))) return { ...entry, refreshToken: null };
      return { ...entry, refreshToken: vault.sealAgain(entry, entry.refreshToken) };
    });
  }

  async #write(text: string): Promise<void> {
    for (;;) {
      const file = await open(this.#path, 'a', 0o600);
      try {
        await file.appendFile(text);
        await file.datasync();
        if (await isStillAt(this.#path, file)) return;
      } finally {
        await file.close();
      }
    }
  }
}

/** The entries of a file, in its order. `torn`: how many lines are none. */
export function readJournal(text: string): { readonly entries: JournalEntry[]; readonly torn: number } {
  const lines = text.split('\n').filter((line) => line !== '');
  const entries = lines.map(readLine).filter((entry) => entry !== undefined);
  return { entries, torn: lines.length - entries.length };
}

export function newestOfEach(entries: readonly JournalEntry[]): JournalEntry[] {
  const newest = new Map<string, JournalEntry>();
  for (const entry of entries) {
    const known = newest.get(keyText(entry));
    if (!known || Date.parse(known.at) <= Date.parse(entry.at)) newest.set(keyText(entry), entry);
  }
  return [...newest.values()];
}

function readLine(line: string): JournalEntry | undefined {
  try {
    return LINE.parse(JSON.parse(line));
  } catch {
    return undefined;
  }
}

function lineOf({ environment, companyId, at, refreshToken }: JournalEntry): string {
  return `\n${JSON.stringify({ environment, company_id: companyId, at, refresh_token: refreshToken })}\n`;
}

async function isStillAt(path: string, file: FileHandle): Promise<boolean> {
  const [named, ours] = [await stat(path).catch(() => undefined), await file.stat()];
  return named?.ino === ours.ino && named.dev === ours.dev;
}

/** So that the name of the file outlives a loss of power, too. */
async function flushFolder(path: string): Promise<void> {
  const folder = await open(dirname(path), 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
