import type { Clock } from '../core/clock.js';
import { type CompanyKey, companyNotFound, describeCompany, type Environment } from '../core/company.js';
import { MusterError } from '../core/errors.js';
import { pageCursor, readCursor } from '../db/cursor.js';
import type { Database } from '../db/database.js';
import { inTransaction, type Transaction } from '../db/transaction.js';
import { Prisma } from '../generated/prisma/client.js';
import { recordAuthorizationRestored, recordReauthorizationRequired } from '../notifications/events.js';
import { removeCompany } from './company-removal.js';
import { translated } from './translated.js';

export type ConnectionStatus = 'active' | 'reauthorization_required' | 'paused';

/** Why a company must authorize again. */
export type ReauthorizationReason =
  /** The service refused the refresh token. */
  | 'token_refused'
  /** An answer was lost, and the token that was sent then is refused or unanswered now. */
  | 'refresh_outcome_unknown'
  /** The service answered a refresh with another company's token. */
  | 'token_for_another_company'
  /** API calls are refused although the token was just renewed. */
  | 'access_token_refused';

export interface ConnectionView extends CompanyKey {
  readonly name?: string;
  readonly status: ConnectionStatus;
  readonly reauthorizationReason?: string;
  readonly token: { readonly expiresAt?: Date; readonly refreshedAt?: Date };
  readonly nextSyncAt?: Date;
}

export interface ConnectionFilter {
  readonly status?: ConnectionStatus | undefined;
  readonly environment?: Environment | undefined;
  readonly limit: number;
  readonly cursor?: string | undefined;
}

interface Row {
  environment: Environment;
  companyId: string;
  name: string | null;
  status: ConnectionStatus;
  reauthorizationReason: string | null;
  expiresAt: Date | null;
  refreshedAt: Date | null;
  nextSyncAt: Date | null;
}

/** The onboarded companies and what they may do; the state table is in docs/states.md. */
export class Connections {
  readonly #db: Database;
  readonly #clock: Clock;

  constructor(db: Database, clock: Clock) {
    this.#db = db;
    this.#clock = clock;
  }

  async find(company: CompanyKey): Promise<ConnectionView | undefined> {
    const [row] = await this.#select(Prisma.sql`WHERE ${names(company)}`);
    return row && view(row);
  }

  /** In the order of environment and company_id. */
  async list({ status, environment, limit, cursor }: ConnectionFilter): Promise<{ data: ConnectionView[]; nextCursor?: string }> {
    const [afterEnvironment = '', afterId = ''] = cursor === undefined ? [] : readCursor(cursor, CURSOR).split('|');
    const conditions = [
      ...(status === undefined ? [] : [Prisma.sql`c.status = ${status}`]),
      ...(environment === undefined ? [] : [Prisma.sql`c.environment = ${environment}`]),
      ...(cursor === undefined ? [] : [Prisma.sql`(c.environment, c.company_id) > (${afterEnvironment}, ${afterId}::uuid)`]),
    ];
    const where = conditions.length === 0 ? Prisma.empty : Prisma.sql`WHERE ${Prisma.join(conditions, ' AND ')}`;
    const rows = await this.#select(Prisma.sql`${where} ORDER BY c.environment, c.company_id LIMIT ${limit + 1}::int`);
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

  /** Nothing more is asked of the service until a person has authorized again. True when that was not so before: it is told then. */
  async requireReauthorization(company: CompanyKey, reason: ReauthorizationReason, tx?: Transaction): Promise<boolean> {
    const work = async (transaction: Transaction) => {
      const changed = await transaction.$executeRaw`
        UPDATE muster.connections c SET reauthorization_reason = ${reason}, status_changed_at = ${this.#now()}
        WHERE ${names(company)} AND c.reauthorization_reason IS NULL`;
      if (changed > 0) await recordReauthorizationRequired(transaction, company, reason);
      return changed > 0;
    };
    return tx ? work(tx) : inTransaction(this.#db, work);
  }

  /** The answer that was given up for lost has come after all, and what it granted is stored: the company goes on. */
  async regain(company: CompanyKey, tx: Transaction): Promise<void> {
    const changed = await tx.$executeRaw`
      UPDATE muster.connections c SET reauthorization_reason = NULL, status_changed_at = ${this.#now()}
      WHERE ${names(company)} AND c.reauthorization_reason = 'refresh_outcome_unknown'`;
    if (changed > 0) await recordAuthorizationRestored(tx, company);
  }

  /** Tokens, mirrored rows, checkpoints, ledger and holds go; runs and audit stay. Throws `company_not_found`. */
  async remove(company: CompanyKey, actor: string, tx?: Transaction): Promise<void> {
    const work = (transaction: Transaction) => removeCompany(transaction, company, actor);
    await (tx ? work(tx) : inTransaction(this.#db, work));
  }

  async #setPaused(company: CompanyKey, paused: boolean): Promise<ConnectionView> {
    await translated(this.#db.prisma.$executeRaw`
      UPDATE muster.connections c SET paused = ${paused}, status_changed_at = ${this.#now()}
      WHERE ${names(company)} AND c.paused <> ${paused}`);
    return this.#get(company);
  }

  async #get(company: CompanyKey): Promise<ConnectionView> {
    const found = await this.find(company);
    if (found) return found;
    throw companyNotFound(company);
  }

  #select(tail: Prisma.Sql): Promise<Row[]> {
    return translated(this.#db.prisma.$queryRaw<Row[]>`
      SELECT c.environment, c.company_id::text AS "companyId", m.name, c.status, c.reauthorization_reason AS "reauthorizationReason",
             t.expires_at AS "expiresAt", t.refreshed_at AS "refreshedAt", c.next_sync_at AS "nextSyncAt"
      FROM muster.connections c
      LEFT JOIN muster.tokens t USING (environment, company_id)
      LEFT JOIN mirror.companies m USING (environment, company_id)
      ${tail}`);
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

const CURSOR = /^(production|test)\|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

function names({ environment, companyId }: CompanyKey): Prisma.Sql {
  return Prisma.sql`c.environment = ${environment} AND c.company_id = ${companyId}::uuid`;
}

function view(row: Row): ConnectionView {
  return {
    environment: row.environment,
    companyId: row.companyId,
    status: row.status,
    token: {
      ...(row.expiresAt ? { expiresAt: row.expiresAt } : {}),
      ...(row.refreshedAt ? { refreshedAt: row.refreshedAt } : {}),
    },
    ...(row.name === null ? {} : { name: row.name }),
    ...(row.reauthorizationReason === null ? {} : { reauthorizationReason: row.reauthorizationReason }),
    ...(row.nextSyncAt ? { nextSyncAt: row.nextSyncAt } : {}),
  };
}
