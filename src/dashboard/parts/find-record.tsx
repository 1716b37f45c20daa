import { Field } from './fields.js';
import { useSeesValues } from './values-hidden.js';
import { useAddress } from './view.js';

/** Finds a record of a company by its number or its name; for those who are shown records. */
export function FindRecord({ environment, company_id }: { readonly environment: string; readonly company_id: string }) {
  const address = useAddress();
  if (!useSeesValues()) return null;
  return (
    <form class="filters" method="get" action={address('/records')} role="search">
      <input type="hidden" name="company" value={company_id} />
      <input type="hidden" name="environment" value={environment} />
      <Field label="Find a record, by number or name">
        <input type="search" name="q" maxLength={2_000} autocomplete="off" />
      </Field>
      <button>Find</button>
    </form>
  );
}
