import type { CompanyKey } from '../core/company.js';
import type { Database } from '../db/connection/database.js';
import type { Transaction } from '../db/connection/transaction.js';
import { removeOldAuditEntries } from '../db/tables/audit.js';
import { removeOldBarriers } from '../db/tables/barriers.js';
import { removeOldCertificates, removeUnsigned } from '../db/tables/certificates.js';
import { deleteExpiredErasureNotices } from '../db/tables/change-erasure.js';
import { removeOldConnectLinks } from '../db/tables/connect-links.js';
import { eraseHeldRows, removeHeldRows } from '../db/tables/held-rows.js';
import { eraseFromSamples, removeOldHolds } from '../db/tables/holds.js';
import { removeOldIssues } from '../db/tables/issues.js';
import { eraseLedgersOf, forgetRowHashes } from '../db/tables/ledger.js';
import { eraseFromWalks } from '../db/tables/ledger-erasure.js';
import type { ListKey } from '../db/tables/lists.js';
import { removeOldRejectedRecords, removeRejectedRecords } from '../db/tables/rejected-records.js';
import { cancelRunsOf, removeOldRuns } from '../db/tables/runs.js';
import { eraseFromReadings, eraseReadingsOf } from '../db/tables/second-readings.js';
import { eraseWalksOf } from '../db/tables/walks.js';
import type { Privacy } from '../privacy/rules.js';
import { eraseCompany, eraseRows, redactRows } from './mirror-erasure.js';
import { eraseLedgerKeys, eraseRejected, type RecordErasure } from './record-holders.js';

/** Days that a record stays for a look. docs/retention.md says for every table how long its rows stay. */
export interface Retention {
  readonly runDays: number;
  readonly auditDays: number;
}

/** Tables that may hold data of a record or of a company, and how it leaves them. An absent member: there is no such data. */
interface Holder {
  /** Tables of schema muster; `mirror` is all of schema mirror. */
  readonly tables: readonly string[];
  /** Its `byRecord` finds further ids of the records, and so goes before the others. */
  readonly findsIds?: true;
  /** Takes records out of a list. The caller has locked the list. */
  readonly byRecord?: (tx: Transaction, erasure: RecordErasure) => Promise<unknown>;
  /** Redacts a list by new rules, or removes what cannot be redacted. The caller has locked the list. Returns how many rows of the mirror it changed. */
  readonly byRules?: (tx: Transaction, list: ListKey, added: Privacy) => Promise<number | void>;
  /** Takes a company out; or the reason why its data stays, or goes otherwise. */
  readonly byCompany: ((tx: Transaction, company: CompanyKey) => Promise<unknown>) | string;
  /** Removes old rows, at most `limit` of them, and returns how many. */
  readonly byAge?: (db: Database, retention: Retention, limit: number) => Promise<number>;
  /** The limit of one transaction, where a row takes many others along. */
  readonly rowsAtOnce?: number;
}

/** A list may reject the same records every night: only the rejects of the newest walk are shown. */
const REJECTED_DAYS = 14;
/** Readers of the feed learn of a forgotten record by its id: a month is long enough to read on. */
const ERASURE_NOTICE_DAYS = 30;
/** An expired link is remembered, so that its page can say so. */
const CONNECT_LINK_DAYS = 90;

/**
 * Every holder, in the order in which each of the four goes through them. It is the lock order of every writer: the connection is locked before; the
 * token, so that no refresh is stored; the lists, so that a page being written commits first and the next one finds itself fenced; the runs before
 * their walks; barriers after batches, as the sequencer locks them. The mirror comes as late as that allows: the numbers of all companies' changes wait
 * for the batches that it locks.
 */
export const HOLDERS: readonly Holder[] = [
  { tables: ['tokens'], byCompany: (tx, company) => tx.token.deleteMany({ where: company }) },
  { tables: ['quarantined_tokens'], byCompany: (tx, company) => tx.quarantinedToken.deleteMany({ where: company }) },
  {
    tables: ['connect_links', 'authorization_flows'],
    byCompany: (tx, company) => tx.connectLink.deleteMany({ where: company }),
    byAge: (db, _, limit) => removeOldConnectLinks(db, { days: CONNECT_LINK_DAYS, limit }),
  },
  { tables: ['lists'], byCompany: (tx, company) => tx.list.deleteMany({ where: company }) },
  {
    tables: ['runs'],
    byCompany: cancelRunsOf,
    byAge: (db, { runDays }, limit) => removeOldRuns(db, { days: runDays, limit }),
    rowsAtOnce: 100,
  },
  {
    tables: ['rejected_records'],
    byRecord: eraseRejected,
    byRules: removeRejectedRecords,
    byCompany: removeRejectedRecords,
    byAge: (db, { runDays }, limit) => removeOldRejectedRecords(db, { days: Math.min(REJECTED_DAYS, runDays), limit }),
  },
  {
    tables: ['walk_pages', 'page_snapshots', 'page_keys'],
    byRecord: eraseLedgerKeys,
    byRules: forgetRowHashes,
    byCompany: eraseLedgersOf,
  },
  {
    tables: ['walks'],
    byRecord: (tx, { list, ids, parent }) => eraseFromWalks(tx, list, { ids, parent }),
    byCompany: eraseWalksOf,
  },
  {
    tables: ['second_reading_records'],
    byRecord: (tx, { list, placeholders, prefix }) => eraseFromReadings(tx, list, { ids: [...placeholders.keys()], prefix }),
    byCompany: eraseReadingsOf,
  },
  {
    tables: ['holds'],
    byRecord: (tx, { list, placeholders }) => eraseFromSamples(tx, list, [...placeholders.keys()]),
    byCompany: (tx, company) => tx.hold.deleteMany({ where: company }),
    byAge: (db, _, limit) => removeOldHolds(db, { limit }),
  },
  {
    tables: ['held_rows'],
    byRecord: (tx, { list, placeholders, prefix }) => eraseHeldRows(tx, list, { ids: [...placeholders.keys()], prefix }),
    byCompany: removeHeldRows,
  },
  {
    tables: ['mirror', 'change_batches', 'changes', 'farewells'],
    findsIds: true,
    byRecord: eraseRows,
    byRules: redactRows,
    byCompany: eraseCompany,
    byAge: (db, _, limit) => deleteExpiredErasureNotices(db, { days: ERASURE_NOTICE_DAYS, limit }),
  },
  {
    tables: ['barriers'],
    byCompany: (tx, company) => tx.barrier.deleteMany({ where: company }),
    byAge: (db, { runDays }, limit) => removeOldBarriers(db, { days: runDays, limit, which: 'repeated' }),
  },
  {
    tables: ['certificates'],
    byCompany: removeUnsigned,
    byAge: (db, { auditDays }, limit) => removeOldCertificates(db, { days: auditDays, limit }),
  },
  {
    tables: ['issues'],
    byCompany: 'A sample of companies is found again by the next look for issues.',
    byAge: (db, { runDays }, limit) => removeOldIssues(db, { days: runDays, limit }),
  },
  {
    tables: ['audit'],
    byCompany: 'It tells that the company was removed, and by whom.',
    byAge: (db, { auditDays }, limit) => removeOldAuditEntries(db, { days: auditDays, limit }),
  },
  {
    tables: ['purges'],
    byCompany: 'It says since when the past of the removed lists is not answered, until retention has removed that past.',
  },
  { tables: ['notifications'], byCompany: 'Events are history. Their delivery removes them by age.' },
  { tables: ['marks'], byCompany: 'A forgotten person stays forgotten when the company comes back.' },
  {
    tables: ['run_requests', 'run_request_lists'],
    byCompany: 'A request whose company is gone makes no run, and is deleted then.',
  },
  {
    tables: ['connections', 'scheduled_lists', 'second_readings', 'schema_misfits'],
    byCompany: (tx, company) => tx.connection.deleteMany({ where: company }),
  },
];
