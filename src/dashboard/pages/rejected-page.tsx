import type { RejectedRecordModel } from '../../api/runs/rejected-records.js';
import { COMPANY, ENVIRONMENT as ENVIRONMENT_COLUMN } from '../parts/columns.js';
import { type Column, column } from '../parts/data-table.js';
import {
  COMPANY as COMPANY_SEARCH,
  ENVIRONMENT,
  FoundTable,
  type ListProps,
  listPage,
  ONE_COMPANY,
  RESOURCE,
} from '../parts/list-page.js';
import { ValuesHidden } from '../parts/record-links.js';
import { Link, numberText } from '../parts/shown-values.js';

export const rejectedPage = listPage<RejectedRecordModel>({
  path: '/rejected',
  title: 'Rejected records',
  limit: 50,
  lead: 'Records that the newest run of each list received and could not keep. Such a run proves nothing, and deletes nothing. Have the service mend them, or the catalogue name the right id: the next run takes them in.',
  filters: { environment: ENVIRONMENT, company: COMPANY_SEARCH, company_id: ONE_COMPANY, resource: RESOURCE },
  label: 'Rejected records found',
  Items: Rejected,
});

function Rejected(found: ListProps<RejectedRecordModel>) {
  const isHidden = found.list.data.some(({ text_hidden }) => text_hidden);
  return (
    <>
      {isHidden && <ValuesHidden />}
      <FoundTable
        {...found}
        caption="Rejected records, with the reason and the place of each"
        columns={isHidden ? COLUMNS : [...COLUMNS, TEXT]}
        keyOf={({ run_id, resource, page, position }) => `${run_id} ${resource} ${page} ${position}`}
        empty={['No rejected record matches.', 'No record was rejected.']}
      />
    </>
  );
}

/** For people, pages and places count from 1. */
export const PLACE: Column<RejectedRecordModel> = column(
  'Page, place',
  ({ page, position }) => `${numberText(page + 1)}, ${numberText(position + 1)}`,
  {
    numeric: true,
  },
);
/** Why a record was rejected (docs/verification.md). */
const REASONS: Readonly<Record<string, string>> = {
  not_an_object: 'It is not a JSON object.',
  no_id: 'It has no id.',
  unusable_id: 'Its id is too long, or looks like a key that Muster gives.',
  nul: 'It has a NUL character, which PostgreSQL cannot store.',
  lone_surrogate: 'It has half of a character, which PostgreSQL cannot store.',
  number_out_of_range: 'It has a number that PostgreSQL cannot store.',
};

export const REASON: Column<RejectedRecordModel> = column('Why', ({ reason }) => rejectedInWords(reason));

const COLUMNS: readonly Column<RejectedRecordModel>[] = [
  COMPANY,
  ENVIRONMENT_COLUMN,
  column('List', ({ resource }) => <b>{resource}</b>),
  REASON,
  PLACE,
  column('Run', ({ run_id, resource }) => (
    <Link to={`/runs/${run_id}`}>
      Show the run<span class="unseen"> of {resource}</span>
    </Link>
  )),
];

const MOST_SHOWN = 300;

const TEXT: Column<RejectedRecordModel> = column('Record', ({ text }) => <code class="record">{shortened(text)}</code>);

function shortened(text: string): string {
  const characters = Array.from(text.slice(0, MOST_SHOWN * 2));
  return characters.length > MOST_SHOWN ? `${characters.slice(0, MOST_SHOWN).join('')}…` : text;
}

function rejectedInWords(reason: string): string {
  return (Object.hasOwn(REASONS, reason) && REASONS[reason]) || `${reason.replaceAll('_', ' ')}.`;
}
