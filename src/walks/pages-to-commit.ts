import type { WalkWrite } from '../mirror/page-parameters.js';
import type { PageToWrite } from '../mirror/page-values.js';
import type { OpenWalk } from './open-walk.js';
import { digestToken } from './pass-memory.js';
import type { ReceivedPage } from './received-page.js';
import type { WalkCheckpoint } from './walk-checkpoint.js';

/** A page that counts, with its place in the pass. */
export interface CountedPage {
  readonly page: ReceivedPage;
  /** Its number within the ledger of its pass, from 0. */
  readonly number: number;
  /** None of its records from this position to the end was received before in this pass. */
  readonly newFrom: number;
}

/** Pages in a row, with the checkpoint that follows them. */
export interface PagesToCommit {
  readonly pages: readonly CountedPage[];
  readonly checkpoint: WalkCheckpoint;
}

/** Makes the write of pages that follow each other. */
export function writeOf(walk: OpenWalk, pages: readonly CountedPage[], checkpoint: WalkCheckpoint): WalkWrite {
  const { parent } = checkpoint;
  const { total } = pages.at(-1)!.page;
  return {
    list: walk.list,
    epoch: walk.epoch,
    runId: walk.runId,
    walkId: walk.id,
    pagesBefore: walk.pages,
    pass: walk.pass,
    checkpoint,
    received: (parent?.received ?? 0) + walk.memory.size,
    duplicates: (parent?.duplicates ?? 0) + checkpoint.duplicates,
    ...(total !== undefined && !parent && { total }),
    idField: walk.idField === undefined ? pages.at(-1)!.page.idField : undefined,
  };
}

export function pageToWrite({ page, number, newFrom }: CountedPage, fillsEmptyList: boolean): PageToWrite {
  const { records, rejected, ledger, answer, nextToken } = page;
  const tokenDigest = nextToken === undefined ? undefined : digestToken(nextToken);
  return { number, tokenDigest, newFrom: fillsEmptyList ? newFrom : undefined, records, rejected, ledger, answer };
}
