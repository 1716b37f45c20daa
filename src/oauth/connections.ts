import type { Clock } from '../core/clock.js';
import { type CompanyKey, companyNotFound, describeCompany } from '../core/company.js';
import { MusterError } from '../core/errors.js';
import type { Database } from '../db/connection/database.js';
import { withDatabaseErrors } from '../db/connection/sql-state.js';
import { inTransaction, type Transaction, WHOLE_LIST_MS } from '../db/connection/transaction.js';
import type { Page, PageQuery } from '../db/statements/cursor.js';
import type { Actor } from '../db/tables/audit.js';
import { type ConnectionFilter, countConnections, listConnections } from '../db/tables/connection-list.js';
import {
  type ConnectionRow,
  changeAuthorization,
  findConnection,
  type ReauthorizationReason,
  setPaused,
} from '../db/tables/connections.js';
import { removeCompany } from '../erasure/company-removal.js';
import { recordAuthorizationRestored, recordReauthorizationRequired } from '../notifications/events.js';
import type { TokenJournal } from './token-journal.js';

/** The onboarded companies and what they may do; the state table is in docs/states.md. */
export class Connections {
  readonly #db: Database;
  readonly #clock: Clock;
  readonly #journal: Pick<TokenJournal, 'append'> | undefined;

  constructor(db: Database, clock: Clock, journal?: Pick<TokenJournal, 'append'>) {
    this.#db = db;
    this.#clock = clock;
    this.#journal = journal;
  }

  find(company: CompanyKey): Promise<ConnectionRow | undefined> {
    return withDatabaseErrors(findConnection(this.#db, company));
  }

  /** Sorted by environment and company_id unless `sort` says otherwise. Throws `invalid_request` for an invalid cursor. */
  list(filter: ConnectionFilter): Promise<Page<ConnectionRow>> {
    return withDatabaseErrors(listConnections(this.#db, filter));
  }

  /** How many companies match. */
  count(filter: Omit<ConnectionFilter, keyof PageQuery>): Promise<number> {
    return withDatabaseErrors(countConnections(this.#db, filter));
  }

  /** Syncs stop, tokens are kept alive. Throws `company_not_found`. */
  pause(company: CompanyKey): Promise<ConnectionRow> {
    return this.#setPaused(company, true);
  }

  /** Throws `company_not_found`, and `reauthorization_required` when resuming would not help. */
  async resume(company: CompanyKey): Promise<ConnectionRow> {
    const { status, reauthorizationReason } = await this.#get(company);
    if (status === 'reauthorization_required') {
      throw reauthorizationRequired(company, reauthorizationReason ?? 'unknown');
    }
    return this.#setPaused(company, false);
  }

  /** Stops all requests for the company until a person has authorized again. Returns true and records an event if that is new. */
  async requireReauthorization(company: CompanyKey, reason: ReauthorizationReason, tx?: Transaction): Promise<boolean> {
    const work = async (transaction: Transaction) => {
      const changed = await changeAuthorization(transaction, { company, from: null, to: reason, at: this.#now() });
      if (changed) await recordReauthorizationRequired(transaction, company, reason);
      return changed;
    };
    return tx ? work(tx) : inTransaction(this.#db, work);
  }

  /** Resumes a company whose refresh was given up for lost, because its answer arrived after all and is stored. */
  async regain(company: CompanyKey, tx: Transaction): Promise<void> {
    const changed = await changeAuthorization(tx, { company, from: 'refresh_outcome_unknown', to: null, at: this.#now() });
    if (changed) await recordAuthorizationRestored(tx, company);
  }

  /** Deletes tokens, mirrored rows, checkpoints, ledger and holds; keeps runs and audit. Throws `company_not_found`. */
  async remove(company: CompanyKey, by: Actor): Promise<void> {
    const at = await inTransaction(this.#db, (tx) => removeCompany(tx, company, by), { timeoutMs: WHOLE_LIST_MS });
    await this.#journal?.append(company, at, null);
  }

  async #setPaused(company: CompanyKey, paused: boolean): Promise<ConnectionRow> {
    await withDatabaseErrors(setPaused(this.#db, { company, paused, at: this.#now() }));
    return this.#get(company);
  }

  async #get(company: CompanyKey): Promise<ConnectionRow> {
    const found = await this.find(company);
    if (found) return found;
    throw companyNotFound(company);
  }

  #now(): Date {
    return new Date(this.#clock.now());
  }
}

export function reauthorizationRequired(company: CompanyKey, reason: string): MusterError {
  return new MusterError(
    'reauthorization_required',
    `${describeCompany(company)} must authorize again (${reason}); send its administrator a connect link`,
    { details: { reason } },
  );
}
