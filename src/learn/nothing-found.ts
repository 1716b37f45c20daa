import type { FoundPaging } from './find-paging.js';
import type { NoLook } from './first-look.js';
import type { LearnedList } from './learned-list.js';
import type { ListView } from './list-view.js';
import type { ListAddress, Probing } from './probing.js';

/** The reason why there is no entry. */
interface Why {
  readonly address: ListAddress;
  /** No request was answered by a page. */
  readonly last?: NoLook['last'];
  readonly isEmpty?: boolean;
  readonly isSpent?: boolean;
  /** Pages came, and no style of paging fits. */
  readonly view?: ListView;
  readonly paging?: FoundPaging;
}

const OPTIONS =
  'Give what the service asks for with --query NAME=VALUE (or --body NAME=VALUE for a POST), and --method POST where the list is read by POST.';

/** The report where nothing fits: what was seen, and what to try next. */
export function nothingFound(probing: Probing, why: Why): LearnedList {
  return {
    outcome: 'nothing',
    findings: findingsOf(why),
    lookUp: adviceFor(why),
    entry: undefined,
    samples: [],
    requests: probing.sent,
  };
}

function findingsOf({ last, isEmpty, isSpent, view, paging }: Why): LearnedList['findings'] {
  const one = (says: string, requests: readonly number[]) => [{ about: 'paging' as const, says, requests }];
  if (last?.kind === 'no-list') return one(`The service answered ${last.status} with ${last.problem}.`, [last.request]);
  if (last) {
    const { error, status, request } = last;
    const says = error.serviceSays === undefined ? '' : ` It says: "${error.serviceSays}"`;
    return one(
      status === null || isSuccess(status)
        ? `No answer came that could be used: ${error.message}.`
        : `The service answered ${status}.${says}`,
      [request],
    );
  }
  if (isEmpty) return one('The list has no records for this company: nothing shows how it is paged.', [1]);
  if (isSpent) return one('All requests were spent, or the time was, before an entry was found.', []);
  const page = view!.reference;
  const size = paging?.size ? ` ${paging.size.name} is the size of a page.` : '';
  return one(
    `A page of ${page.keys.length} records came, with the records in ${view!.dataPath.join('.') || 'the answer itself'}.${size} No known parameter leads to another page.`,
    [page.request],
  );
}

function adviceFor({ last, address, isEmpty, isSpent, view }: Why): readonly string[] {
  const status = last?.status ?? 0;
  if (isSuccess(status)) return ['Look up the address of the list: this one answers with something else.', OPTIONS];
  if (status === 401 || status === 403)
    return [
      'The authorization does not reach this list: look up which scope or role it needs, and have the company authorize again.',
    ];
  if (status === 404)
    return [
      "Look up the path: it is appended to the environment's base URL, and {company_id} in it is replaced by the company's id. Or the company does not have this list.",
      OPTIONS,
    ];
  if (status === 405) return [`The list is not read by ${address.method}: look up the method.`, OPTIONS];
  if (last) return ["Look up the list's required parameters.", OPTIONS];
  if (isEmpty) return ['Try it with a company that has a few dozen records in this list.'];
  if (isSpent) return ['Name what you know with --query, --method and the path, so that less must be found out.', OPTIONS];
  const members = [...new Set(view!.tallies.flatMap(({ numbers }) => [...numbers.keys()]))].slice(0, 10);
  return [
    `Look up the names of the parameters that ask for a later page.${members.length > 0 ? ` Numbers stand in ${members.join(', ')}.` : ''}`,
    'docs/configuration.md has every style of paging: with the names at hand, write the entry by it.',
    OPTIONS,
  ];
}

/** A success that carries something else than a list. */
function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}
