import { mayAct, SEES_VALUES } from '../../api/plumbing/caller.js';
import { Field } from './fields.js';
import { Link } from './shown-values.js';
import { useAddress, useView } from './view.js';

/** A record of a company's list. */
export interface RecordPlace {
  readonly environment: string;
  readonly company_id: string;
  readonly resource: string;
  readonly id: string;
}

/** The page of a record. Browsers take `.` and `..` out of a path, so that such an id is in the query. */
export function recordPath({ environment, company_id, resource, id }: RecordPlace): string {
  const list = `/records/${environment}/${company_id}/${resource}`;
  const part = encodeURIComponent(id);
  return /^\.{0,2}$/.test(id) ? `${list}?id=${part}` : `${list}/${part}`;
}

/** The page that asks before a record is erased. */
export function erasePath({ environment, company_id, ...record }: RecordPlace): string {
  return `/companies/${environment}/${company_id}/forget?${new URLSearchParams({ resource: record.resource, id: record.id })}`;
}

/** A link to the page of a record, for those who may open it; the id alone for others. `label`: its name, a text from outside. */
export function RecordLink({ label, ...record }: RecordPlace & { readonly label?: string | undefined }) {
  const text = label ?? record.id;
  return useSeesValues() ? <Link to={recordPath(record)}>{text}</Link> : <>{text}</>;
}

/** Finds a record of a company by its number or its name; for those who are shown records. */
export function FindRecord({ environment, company_id }: { readonly environment: string; readonly company_id: string }) {
  const address = useAddress();
  if (!useSeesValues()) return null;
  return (
    <form class="filters" method="get" action={address('/records')} role="search">
      <input type="hidden" name="company" value={company_id} />
      <input type="hidden" name="environment" value={environment} />
      <Field label="Find a record">
        <input type="search" name="q" maxLength={2_000} placeholder="number or name" autocomplete="off" />
      </Field>
      <button>Find</button>
    </form>
  );
}

/** Says why a page has ids and no names. */
export function ValuesHidden() {
  return <p class="hint">Values of records are shown to operators and admins.</p>;
}

/** Whether the viewer is shown values of records. */
export function useSeesValues(): boolean {
  const { viewer } = useView();
  return viewer !== undefined && mayAct(viewer.caller, SEES_VALUES);
}
