/* services-init.pl as a string: services_init. Read by the assembler from the top folder. */
	.section .rodata
	.global services_init
	.type services_init, %object
services_init:
	.incbin "builder/services-init.pl"
	.byte 0
	.size services_init, . - services_init
	.section .note.GNU-stack, "", %progbits
