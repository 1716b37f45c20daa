import assert from 'node:assert/strict';
import type { Download, Locator, Page } from 'playwright-core';
import { waitFor } from '../support/wait-for.js';

/** Walks through the control room as a person does: finds everything by its visible text, and counts clicks. Typing and Enter are free. */
export class Walker {
  /** Each click on a link or a button, and each choice in a select. */
  clicks = 0;

  constructor(
    readonly page: Page,
    /** The person scrolls, and sends forms by their buttons, since no script does it. */
    private readonly isOnPhone: boolean,
  ) {}

  /** Follows the first link of this name. */
  follow(name: string | RegExp): Promise<void> {
    return this.#click(this.page.getByRole('link', { name, exact: true }).first());
  }

  press(name: string | RegExp): Promise<void> {
    return this.#click(this.page.getByRole('button', { name, exact: true }).first());
  }

  async download(name: string): Promise<Download> {
    const either = this.page.getByRole('link', { name, exact: true }).or(this.page.getByRole('button', { name, exact: true }));
    const [download] = await Promise.all([this.page.waitForEvent('download'), this.#click(either.first())]);
    return download;
  }

  async type(label: string, text: string): Promise<void> {
    const field = this.page.getByLabel(label, { exact: true });
    await this.#see(field);
    await field.fill(text);
  }

  async enter(label: string, text: string): Promise<void> {
    await this.type(label, text);
    await this.page.getByLabel(label, { exact: true }).press('Enter');
  }

  async choose(label: string, value: string): Promise<void> {
    const select = this.page.getByRole('combobox', { name: label, exact: true });
    await this.#see(select);
    this.clicks += 1;
    await select.selectOption(value);
    if (this.isOnPhone) await this.press('Show');
  }

  /** Waits until the page shows the text, and sees it. */
  read(text: string | RegExp): Promise<void> {
    return this.#see(this.page.getByRole('main').getByText(text).filter({ visible: true }).first());
  }

  async #click(target: Locator): Promise<void> {
    await this.#see(target);
    this.clicks += 1;
    await target.click();
  }

  /** Fails for what a person sees only after scrolling. */
  async #see(target: Locator): Promise<void> {
    await target.waitFor();
    if (this.isOnPhone) return;
    const { width, height } = this.page.viewportSize()!;
    // A page that follows a filter may still be replacing its rows.
    const isWithin = async () => {
      const box = await target.boundingBox();
      return box !== null && box.x >= 0 && box.y >= 0 && box.x + box.width <= width && box.y + box.height <= height;
    };
    await waitFor(isWithin, { what: `${String(target)} within the window` });
    assert.equal(await this.page.evaluate('window.scrollY'), 0);
  }
}
