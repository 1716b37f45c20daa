import { wholeText } from './times.js';
import { useView } from './view.js';

/** The head of a page on paper, where neither the bar nor the address of the browser is: what was printed, when, and from which installation. */
export function PrintedHead({ title }: { readonly title: string }) {
  const { address, now, publicUrl, timezone } = useView();
  return (
    <p class="printed">
      <b>{title}</b>
      <span>{wholeText(now, timezone)}</span>
      <span>{publicUrl + address}</span>
    </p>
  );
}
