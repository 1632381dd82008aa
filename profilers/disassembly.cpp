namespace pragma {}
