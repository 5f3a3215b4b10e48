# Thin over bootstrap.py, which does the same where there is no make.
PYTHON ?= python3
ARGS ?=

.PHONY: run setup assets test simulate check services

run:       ## set up what is missing and start the studio
	@$(PYTHON) bootstrap.py run $(ARGS)

setup:     ## virtual environment with the tools for development
	@$(PYTHON) bootstrap.py setup --dev

assets:    ## build the front end, fetch the voices
	@$(PYTHON) bootstrap.py assets

test:      ## the whole suite; one part: make test ARGS="tests/projects -k split"
	@$(PYTHON) bootstrap.py test $(ARGS)

simulate:  ## 5,000 schedules of the pipeline under faults; SEED=n begins there
	@$(PYTHON) bootstrap.py simulate $(ARGS)

check:     ## linters, types, import contracts, missing migrations
	@$(PYTHON) bootstrap.py check

services:  ## private PostgreSQL, RabbitMQ, Redis and S3 until Ctrl-C
	@$(PYTHON) bootstrap.py services $(ARGS)
