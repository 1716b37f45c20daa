-- Notifications that were not delivered, which each scrape of the metrics counts: few of many.
CREATE INDEX "notifications_undelivered" ON "muster"."notifications"("status") WHERE "status" IN ('pending', 'failed');
