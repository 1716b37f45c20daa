import { type RecordPlace, recordPath } from './record-path.js';
import { Link } from './shown-values.js';
import { useSeesValues } from './values-hidden.js';

/** A link to the page of a record, for those who may open it; the id alone for others. `label`: its name, a text from outside. */
export function RecordLink({ label, ...record }: RecordPlace & { readonly label?: string | undefined }) {
  const text = label ?? record.id;
  return useSeesValues() ? <Link to={recordPath(record)}>{text}</Link> : <>{text}</>;
}
