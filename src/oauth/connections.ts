import type { Clock } from '../core/clock.js';
import { type CompanyKey, companyNotFound, describeCompany, type Environment } from '../core/company.js';
import { MusterError } from '../core/errors.js';
import { pageCursor, readCursor } from '../db/cursor.js';
import type { Database } from '../db/database.js';
import { withDatabaseErrors } from '../db/sql-state.js';
import {
  type ConnectionRow,
  type ConnectionStatus,
  endAuthorization,
  findConnection,
  listConnections,
  type ReauthorizationReason,
  restoreAuthorization,
  setPaused,
} from '../db/tables/connections.js';
import { inTransaction, type Transaction } from '../db/transaction.js';
import { recordAuthorizationRestored, recordReauthorizationRequired } from '../notifications/events.js';
import { removeCompany } from './company-removal.js';

export interface ConnectionView extends Omit<ConnectionRow, 'expiresAt' | 'refreshedAt'> {
  readonly token: Pick<ConnectionRow, 'expiresAt' | 'refreshedAt'>;
}

interface ConnectionFilter {
  readonly status?: ConnectionStatus | undefined;
  readonly environment?: Environment | undefined;
  readonly limit: number;
  readonly cursor?: string | undefined;
}

const CURSOR = /^(production|test)\|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The onboarded companies and what they may do; the state table is in docs/states.md. */
export class Connections {
  readonly #db: Database;
  readonly #clock: Clock;

  constructor(db: Database, clock: Clock) {
    this.#db = db;
    this.#clock = clock;
  }

  async find(company: CompanyKey): Promise<ConnectionView | undefined> {
    const row = await withDatabaseErrors(findConnection(this.#db, company));
    return row && view(row);
  }

  /** In the order of environment and company_id. Throws `invalid_request` for a cursor that no answer gave. */
  async list({ cursor, limit, ...filter }: ConnectionFilter): Promise<{ data: ConnectionView[]; nextCursor?: string }> {
    const [environment, companyId] = cursor === undefined ? [] : readCursor(cursor, CURSOR).split('|');
    const after = companyId === undefined ? undefined : { environment: environment as Environment, companyId };
    const rows = await withDatabaseErrors(listConnections(this.#db, { ...filter, after, limit: limit + 1 }));
    const data = rows.slice(0, limit).map(view);
    const last = data.at(-1);
    return rows.length > limit && last ? { data, nextCursor: pageCursor(`${last.environment}|${last.companyId}`) } : { data };
  }

  /** Syncs stop, tokens are kept alive. Throws `company_not_found`. */
  pause(company: CompanyKey): Promise<ConnectionView> {
    return this.#setPaused(company, true);
  }

  /** Throws `company_not_found`, and `reauthorization_required` when resuming would not help. */
  async resume(company: CompanyKey): Promise<ConnectionView> {
    const { status, reauthorizationReason } = await this.#get(company);
    if (status === 'reauthorization_required') {
      throw reauthorizationRequired(company, reauthorizationReason ?? 'unknown');
    }
    return this.#setPaused(company, false);
  }

  /** Nothing more is asked of the service until a person has authorized again. True, and told, when that was not so before. */
  async requireReauthorization(company: CompanyKey, reason: ReauthorizationReason, tx?: Transaction): Promise<boolean> {
    const work = async (transaction: Transaction) => {
      const changed = await endAuthorization(transaction, { company, reason, at: this.#now() });
      if (changed) await recordReauthorizationRequired(transaction, company, reason);
      return changed;
    };
    return tx ? work(tx) : inTransaction(this.#db, work);
  }

  /** The answer that was given up for lost has come after all, and what it granted is stored: the company goes on. */
  async regain(company: CompanyKey, tx: Transaction): Promise<void> {
    const changed = await restoreAuthorization(tx, { company, reason: 'refresh_outcome_unknown', at: this.#now() });
    if (changed) await recordAuthorizationRestored(tx, company);
  }

  /** Tokens, mirrored rows, checkpoints, ledger and holds go; runs and audit stay. Throws `company_not_found`. */
  remove(company: CompanyKey, actor: string): Promise<void> {
    return inTransaction(this.#db, (tx) => removeCompany(tx, company, actor));
  }

  async #setPaused(company: CompanyKey, paused: boolean): Promise<ConnectionView> {
    await withDatabaseErrors(setPaused(this.#db, { company, paused, at: this.#now() }));
    return this.#get(company);
  }

  async #get(company: CompanyKey): Promise<ConnectionView> {
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

function view({ expiresAt, refreshedAt, ...row }: ConnectionRow): ConnectionView {
  return { ...row, token: { expiresAt, refreshedAt } };
}
